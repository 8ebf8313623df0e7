"""How passes begin, give objects to the ledger, and end. Each function belongs inside of a transaction that holds the
link first, where there is one: as whoever settles its rows does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import F, Q

from core.replicating import passes as core
from core.replicating.passes import PATIENCE, PassKind, PassState, ReportRow, Stretch
from core.replicating.states import OpenStatus
from db.chunks import chunks
from replication.models import Link, OpenObject, Pass, PassRows, PassStretch, Rule
from replication.transitions import duties, ledger
from replication.transitions.ledger import Lack

MOST_ROWS = 1_000_000
"""So many rows a report has at most; what is beyond is counted alone."""
ENDED = (OpenStatus.FAILED.value, OpenStatus.SKIPPED.value)


def begin(made: Pass) -> Pass:
    """Store a pass with its stretches, those of its rule as far as they are cut by now, and with its targets: one that
    comes later is none of it."""
    stretches = [Stretch(b"", None)]
    if made.rule_id is not None:
        rows = made.rule.shards.order_by("low")
        stretches = [Stretch(bytes(row.low), None if row.high is None else bytes(row.high)) for row in rows]
        of = [made.link] if made.link_id is not None else list(made.rule.links.kept().order_by("number"))
        made.actions = {str(link.number): {} for link in of}
        made.total = made.rule.full_objects * len(of) if made.rule.full_ended_at and not made.prefix else None
    made.save()
    PassStretch.objects.bulk_create(
        [PassStretch(of=made, low=one.low, high=one.high, after=one.low) for one in core.below(stretches, made.prefix)],
        batch_size=200,
    )
    duties.ensure_pass(made)
    duties.wake_pass(made.pk)
    return made


def note(link: Link, made: Pass, lacks: Sequence[Lack], now: datetime, *, again: bool) -> bool:
    """Give objects to the ledger, and wait for them; false where there is no room, and nothing is to be kept of it.
    What has failed before is tried at once. `again`: they are sent even if they are equal by then."""
    if ledger.open_number(link.pk) + len(lacks) > ledger.MOST_OPEN:
        return False
    ledger.note(link, lacks, now)
    number, size = 0, 0
    for some in chunks(list(lacks), ledger.ROWS_AT_ONCE):
        keys = Q(key__in=[lack.key for lack in some])
        ledger.retry(link, keys & (~Q(status=OpenStatus.PENDING.value) | Q(attempts__gt=0)), now)
        rows = OpenObject.objects.filter(keys, Q(of_pass=None) | ~Q(of_pass=made.pk), link=link.pk)
        found = list(rows.values_list("pk", "size"))
        number, size = number + len(found), size + sum(max(0, one) for _, one in found)
        rows.update(of_pass=made.pk)
        if again:
            OpenObject.objects.filter(keys, link=link.pk).update(again=True)
    Pass.objects.filter(pk=made.pk).update(noted=F("noted") + number, noted_bytes=F("noted_bytes") + size)
    return True


def report(made: Pass, rows: Sequence[ReportRow]) -> None:
    """Keep rows of its report, as far as there is room."""
    kept = rows[: max(0, MOST_ROWS - made.rows)]
    if kept:
        PassRows.objects.create(of_id=made.pk, number=len(kept), rows=core.pack(kept))
    made.rows += len(kept)
    made.more_rows = made.more_rows or len(kept) < len(rows)
    Pass.objects.filter(pk=made.pk).update(rows=made.rows, more_rows=made.more_rows)


# --- what it waits for ------------------------------------------------------------------------------------------------


def waiting_rows(made: Pass) -> Any:
    """Open objects that it waits for, those that have failed among them."""
    return OpenObject.objects.filter(of_pass=made.pk)


def failed_rows(made: Pass) -> Any:
    """Those of them that have come to a bad end; what fails for a reason that may pass has patience."""
    return waiting_rows(made).filter(Q(status__in=ENDED) | Q(attempts__gte=PATIENCE))


def gather(link: Link, made: Pass, most: int) -> int:
    """Write down what has failed and wait for it no longer: it stays open, and whatever becomes of it, the pass has
    ended as it has. Gives how many."""
    rows = list(failed_rows(made).order_by("pk")[:most])
    if not rows:
        return 0
    for some in chunks(rows, ledger.ROWS_AT_ONCE):
        OpenObject.objects.filter(pk__in=[row.pk for row in some]).update(of_pass=None)
    Pass.objects.filter(pk=made.pk).update(failed=F("failed") + len(rows))
    told = [ReportRow(link.number, row.name, core.Action.FAILED.value, row.size, row.code, row.detail) for row in rows]
    report(made, told)
    return len(rows)


def end(made: Pass, state: PassState, message: str, now: datetime) -> None:
    """It has ended so, and nothing else is said of it from now on. What it waits for stays open, and is sent only if it
    is not equal."""
    changed = Pass.objects.filter(pk=made.pk, ended_at=None)
    if not changed.update(state=state.value, message=message, ended_at=now, error_since=None, waiting=0):
        return
    if made.kind == PassKind.RESYNC:
        waiting_rows(made).update(of_pass=None, again=False)
    PassStretch.objects.filter(of=made.pk).delete()
    duties.end_pass(made.pk)


def going_on(rule: Rule) -> Any:
    """Passes of a rule that have not ended."""
    return Pass.objects.filter(rule=rule.pk, ended_at=None)
