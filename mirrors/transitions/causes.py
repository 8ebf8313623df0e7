"""Why what a mirror waits for has not arrived by the stores' replication, written down beside it.

It explains, and nothing follows from it: what has arrived is found by looking at the destination alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from core.bringing import REPLACEABLE
from core.mirroring.facts import ARRIVING
from core.replication.causes import Verdict
from core.replication.facts import StoreKind
from db.chunks import chunks
from mirrors.models import Blocker, Mirror
from mirrors.queries.missing_counts import COUNTED

_NOTHING = {"cause": "", "cause_told": "", "cause_advice": "", "cause_at": None}


def awaited(mirror: Mirror) -> QuerySet[Blocker]:
    """What the stores' replication should bring: missing here, of the namespace, not known to be gone at the source
    and not waived."""
    rows = mirror.blockers.needed().filter(reason__in=ARRIVING, gone_at_source=False, waived=False)
    return rows.exclude(full=True).exclude(address_hash="")


def wrong(mirror: Mirror) -> QuerySet[Blocker]:
    """What is there and has other bytes than it should, of the namespace: the source's may be written over it."""
    rows = mirror.blockers.needed().filter(reason__in=sorted(REPLACEABLE), gone_at_source=False)
    return rows.exclude(full=True).exclude(address_hash="")


def note_causes(mirror: Mirror, found: Mapping[Verdict, Collection[str]], now: datetime) -> None:
    """Write down, for addresses by their hashes, why they have not arrived; all that wait for one are told."""
    _note(mirror, awaited(mirror), found, now)


def note_kept(mirror: Mirror, found: Mapping[Verdict, Collection[str]], now: datetime) -> None:
    """The same of what is there with other content, and was not replaced although somebody asked for it."""
    _note(mirror, wrong(mirror), found, now)


def _note(mirror: Mirror, rows: QuerySet[Blocker], found: Mapping[Verdict, Collection[str]], now: datetime) -> None:
    """Under the mirror's lock: others write to the same rows, in another order."""
    for verdict, hashes in found.items():
        told = {"cause": verdict.cause.value, "cause_told": verdict.told, "cause_advice": verdict.advice}
        for some in chunks(sorted(hashes)):
            with transaction.atomic():
                Mirror.objects.select_for_update(no_key=True).filter(pk=mirror.pk).first()
                rows.filter(address_hash__in=some).update(**told, cause_at=now)


def note_summary(mirror: Mirror, kind: StoreKind, now: datetime) -> None:
    """Sum up the causes of a mirror, the most frequent first; with nothing to explain there is none."""
    rows = awaited(mirror).exclude(cause="").order_by("pk").values_list("key", "cause", "cause_told", "cause_advice")
    told: dict[str, tuple[str, str]] = {}
    counted: Counter[str] = Counter()
    for cause, words in _each_thing(rows[:COUNTED]):
        counted[cause] += 1
        told.setdefault(cause, words)
    causes = [
        {"cause": cause, "number": number, "message": told[cause][0], "fix": told[cause][1]}
        for cause, number in counted.most_common()
    ]
    summary = {"as_of": now.isoformat(), "store": kind.value, "causes": causes} if causes else None
    Mirror.objects.filter(pk=mirror.pk).update(replication=summary)


def _each_thing(rows: Iterable[Any]) -> Iterable[tuple[str, tuple[str, str]]]:
    """Several ranges may wait for one object, with a row each."""
    seen: set[str] = set()
    for key, cause, told, advice in rows:
        if key not in seen:
            seen.add(key)
            yield cause, (told, advice)


def forget_causes(mirror: Mirror) -> None:
    """Of a mirror whose objects the stores bring no more."""
    mirror.blockers.filter(~Q(cause="")).update(**_NOTHING)
    Mirror.objects.filter(pk=mirror.pk).update(replication=None)


def ask_again(mirror: Mirror) -> int:
    """Have the next round ask for the causes of all that is awaited, however lately it did; gives how many rows."""
    return awaited(mirror).update(cause_at=None)
