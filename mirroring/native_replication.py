"""Asks the source's store why what a native mirror waits for has not been copied, now and then, and so much at a time.

Only what is missing is asked for. It runs in the duty that watches a mirror, beside checks and promotion, which need
nothing of it.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import TypeVar

from django.db.models import F, Q

from core.bringing import ObjectReplication
from core.errors import LakeMirrorError
from core.ports import Replication
from core.replication.causes import Cause, Verdict, cause_of_setup, find_cause
from core.replication.facts import Failure, Found, Setup, StoreKind
from db import clock
from db.chunks import chunks
from deployment.wiring import clients
from mirrors.models import Blocker, Mirror, ReplicationFailure
from mirrors.transitions.causes import awaited, forget_causes, note_causes, note_summary

T = TypeVar("T")

MOST_NAMED = 1000
MOST_HEADS = 200
HEADS_AT_ONCE = 8
SECONDS = 5.0
"""So long a round asks for objects; what is left over comes first in the next one."""
ASK_EACH = timedelta(minutes=2)
LONGEST_USUAL = timedelta(minutes=15)
"""What S3's replication promises: longer is never usual."""
COMMITS = 100
"""So many of the last ones tell how long copies usually take."""
FAILURES_KEPT = timedelta(hours=24)
log = logging.getLogger("lakemirror.replication")


def look_at_replication(mirror: Mirror) -> None:
    """Note why things have not arrived, those first that were never asked for. A store that can't be asked now leaves
    what was noted before: this explains only, and fails no duty."""
    if mirror.object_replication != ObjectReplication.NATIVE:
        if mirror.replication is not None:
            forget_causes(mirror)
        return
    now = clock.now()
    due = awaited(mirror).filter(Q(cause_at=None) | Q(cause_at__lt=now - ASK_EACH))
    rows = list(due.order_by(F("cause_at").asc(nulls_first=True), "pk")[:MOST_NAMED])
    if rows and not mirror.source.frozen_reason:
        try:
            setup = _setup(mirror, clients.replication(mirror.source.region))
        except LakeMirrorError as error:
            log.info("%s: why things have not arrived is not known: %s", mirror.name, error.message)
            return
        note_causes(mirror, _causes(mirror, setup, rows, now), now)
        note_summary(mirror, setup.kind, now)
    elif mirror.replication is not None and not awaited(mirror).exists():
        note_summary(mirror, StoreKind(mirror.replication["store"]), now)


# --- the places -------------------------------------------------------------------------------------------------------


def _setup(mirror: Mirror, store: Replication) -> Setup:
    """Raises what keeps the source's store from telling anything at the moment."""
    source, destination = mirror.source.storage_namespace, mirror.storage_namespace
    rules = _answer(lambda: store.rules(source))
    if isinstance(rules, LakeMirrorError) and rules.retryable:
        raise rules
    kind = _answer(lambda: store.kind(source))
    attempts = _answer(lambda: store.attempts(source))
    return Setup(
        source=source,
        destination=destination,
        kind=StoreKind.OTHER if isinstance(kind, LakeMirrorError) else kind,
        rules=rules,
        source_versioning=_answer(lambda: clients.quick_objects(mirror.source.region).versioning(source)),
        destination_versioning=_answer(lambda: clients.quick_objects(mirror.region).versioning(destination)),
        attempts={} if isinstance(attempts, LakeMirrorError) else attempts,
        usual=_usual(mirror),
    )


def _answer(ask: Callable[[], T]) -> T | LakeMirrorError:
    try:
        return ask()
    except LakeMirrorError as error:
        return error


def _usual(mirror: Mirror) -> timedelta:
    """How long it takes from the first sight of a commit until all of it is here: of 20 commits 19 are quicker."""
    complete = mirror.commits.filter(validated_at__isnull=False).order_by("-commit_id")
    times = complete.values_list("commit__seen_at", "validated_at")[:COMMITS]
    took = sorted(until - since for since, until in times)
    seen = took[int(0.95 * (len(took) - 1))] if took else timedelta()
    return min(max(seen, timedelta(minutes=1)), LONGEST_USUAL)


# --- the objects ------------------------------------------------------------------------------------------------------


def _causes(mirror: Mirror, setup: Setup, rows: Iterable[Blocker], now: datetime) -> Mapping[Verdict, set[str]]:
    """By what was found, the hashes of the addresses that it was found of."""
    found: dict[Verdict, set[str]] = defaultdict(set)
    to_ask: dict[str, str] = {}
    for row in rows:
        if (verdict := cause_of_setup(setup, row.address)) is not None:
            found[verdict].add(row.address_hash)
        elif len(to_ask) < MOST_HEADS:
            to_ask[row.address] = row.address_hash
    failures = _failures(mirror, to_ask.values())
    for address, answer in _heads(mirror, to_ask):
        verdict = find_cause(setup, address, answer, failures.get(to_ask[address]), now)
        if not (verdict.cause is Cause.NOT_TOLD and isinstance(answer, LakeMirrorError) and answer.retryable):
            found[verdict].add(to_ask[address])
    return found


def _heads(mirror: Mirror, addresses: Iterable[str]) -> list[tuple[str, Found]]:
    """What the source says of objects, as many as it gives in SECONDS."""
    store, until = clients.replication(mirror.source.region), time.monotonic() + SECONDS

    def ask(address: str) -> tuple[str, Found] | None:
        if time.monotonic() > until:
            return None
        return address, _answer(lambda: store.stands(f"{mirror.source.namespace}/{address}"))

    with ThreadPoolExecutor(HEADS_AT_ONCE) as pool:
        return [answer for answer in pool.map(ask, addresses) if answer is not None]


def _failures(mirror: Mirror, hashes: Iterable[str]) -> dict[str, Failure]:
    """The last failures that the source's store told of these, by its events."""
    bucket = mirror.storage_namespace.partition("://")[2].partition("/")[0]
    lately = ReplicationFailure.objects.filter(
        source=mirror.source, bucket__in=("", bucket), at__gt=clock.now() - FAILURES_KEPT
    )
    some = (row for part in chunks(sorted(set(hashes))) for row in lately.filter(address_hash__in=part).order_by("at"))
    return {row.address_hash: Failure(row.reason, row.at) for row in some}
