"""Measures of a mirror over time, five minutes and an hour each: how they are written.

What was read (lag, backlog, what is missing) goes in as the most so far, so that a reading may come twice, or late.
Promotions and runs are counted from their own rows, again and again until the time is settled. What a check looked
through is added in the transaction that writes down what it found. So a worker may be killed anywhere, and two of them
may meet: nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, Case, Count, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from core.mirroring.promotion import MOVED_BY_OTHERS, Why
from core.mirroring.rpo import lag
from db import clock
from jobs.lease import Lease
from mirrors.models import Measure, Mirror, MirrorCommit, Promotion, Run
from mirrors.queries.candidates import Pending
from mirrors.queries.missing_counts import waiting_at
from mirrors.transitions.rpo_breaches import is_seen, unchecked_since

SHORT, LONG = 5, 60
"""Minutes."""
KEPT = {SHORT: timedelta(hours=48), LONG: timedelta(days=91)}
"""A day more than a page asks for, whose first step begins before its period does."""
SETTLED_AFTER = timedelta(minutes=2)
"""What happened in a time is written down by then: longer than a transaction and a call."""
MISSING_EVERY = timedelta(seconds=30)
"""What is missing is counted no more often: there may be millions of things."""
COUNTED_EVERY = timedelta(seconds=10)
"""Promotions and runs are counted no more often, but when something has moved."""
CLEANED = 100
NO_NEWS = (*MOVED_BY_OTHERS, Why.WRITTEN, Why.UNDONE, Why.REPAIRED)
"""Moves by which no commit became mirrored."""


def note_measures(mirror: Mirror, pending: Sequence[Pending], lease: Lease, *, moved: bool = False) -> None:
    """Write down how late a mirror is, and what happened since the last time. `pending`: each branch's first commit;
    `moved`: something has moved in this very round."""
    if mirror.state == Mirror.State.DELETING:
        return
    now = clock.now()
    known = dict(mirror.measures.filter(_running(now)).values_list("minutes", "read_at"))
    if len(known) < len(KEPT):
        _begin_and_clean(mirror, now, lease)
    read_at = known.get(SHORT)
    changes = _read(_most(mirror, pending, now, counting=_has_passed(MISSING_EVERY, read_at, now)), now)
    rows = mirror.measures.filter(settled=False)
    if moved or _has_passed(COUNTED_EVERY, read_at, now):
        changes |= {**_counted(), "settled": _is_over(now)}
    else:
        rows = rows.filter(_running(now))
    with transaction.atomic():
        _lock(rows)
        rows.update(**changes)


def _has_passed(every: timedelta, read_at: datetime | None, now: datetime) -> bool:
    """Whether another such while has begun since the last reading, by the clock: readings may come every second."""
    if read_at is None:
        return True
    return read_at.timestamp() // every.total_seconds() != now.timestamp() // every.total_seconds()


def note_checked(mirror: Mirror, objects: int, size: int, *, new_objects: int = 0, new_size: int = 0) -> None:
    """Count what a check looked through, and what of it no earlier one had covered; inside of the transaction that
    writes down what it found."""
    now = clock.now()
    rows = mirror.measures.filter(_running(now))
    if _lock(rows) < len(KEPT):
        _begin(mirror, now)
    rows.update(
        objects_checked=F("objects_checked") + objects,
        bytes_checked=F("bytes_checked") + size,
        objects_new=F("objects_new") + new_objects,
        bytes_new=F("bytes_new") + new_size,
    )


def began(at: datetime, minutes: int) -> datetime:
    """When the measure began that a moment belongs to."""
    length = minutes * 60
    return datetime.fromtimestamp(at.timestamp() // length * length, UTC)


# --- rows -------------------------------------------------------------------------------------------------------------


def _running(now: datetime) -> Q:
    short, long = (Q(minutes=minutes, began_at=began(now, minutes)) for minutes in KEPT)
    return short | long


def _lock(rows: QuerySet[Measure]) -> int:
    """Always in the same order: two that update several of them must not wait for each other."""
    return len(rows.select_for_update().order_by("pk").values_list("pk", flat=True))


def _begin(mirror: Mirror, now: datetime) -> None:
    rows = []
    for minutes in KEPT:
        start = began(now, minutes)
        rows.append(Measure(mirror=mirror, minutes=minutes, began_at=start, ends_at=start + timedelta(minutes=minutes)))
    Measure.objects.bulk_create(rows, ignore_conflicts=True)


def _begin_and_clean(mirror: Mirror, now: datetime, lease: Lease) -> None:
    """The lease keeps the mirror's row there; what is too old goes in small steps."""
    short, long = (Q(minutes=minutes, began_at__lt=now - period) for minutes, period in KEPT.items())
    with transaction.atomic():
        lease.lock()
        _begin(mirror, now)
        old = list(mirror.measures.filter(short | long, settled=True).values_list("pk", flat=True)[:CLEANED])
        mirror.measures.filter(pk__in=old).delete()


# --- what was read ----------------------------------------------------------------------------------------------------


def _most(mirror: Mirror, pending: Sequence[Pending], now: datetime, *, counting: bool) -> dict[str, float]:
    """What is known of this moment. That nothing waits is known only while both sides are looked at."""
    figures: dict[str, float] = {}
    if pending or (is_seen(mirror, now) and not unchecked_since([mirror], now)):
        figures["lag_seconds"] = lag(min((first.seen_at for first in pending), default=None), now)
        figures["backlog"] = sum(first.number for first in pending)
    if counting:
        waiting = waiting_at([mirror]).get(mirror.pk)
        figures["missing"] = waiting.number if waiting else 0
    return figures


def _read(most: Mapping[str, float], now: datetime) -> dict[str, Any]:
    """How a reading changes the rows that it belongs to; an earlier one that comes late is not the last."""
    newer = Q(read_at=None) | Q(read_at__lte=now)
    changes = {
        field: _if(Q(**{field: None}) | Q(**{f"{field}__lt": value}), field, value, now)
        for field, value in most.items()
    }
    if "backlog" in most:
        changes["backlog_last"] = _if(newer, "backlog_last", most["backlog"], now)
    return changes | {"read_at": _if(newer, "read_at", now, now)}


def _if(better: Q, field: str, value: Any, now: datetime) -> Case:
    """Another value for a column of the running rows, if it is better than theirs."""
    then = Value(value, output_field=Measure._meta.get_field(field))
    return Case(When(better, began_at__lte=now, ends_at__gt=now, then=then), default=F(field))


# --- what is counted --------------------------------------------------------------------------------------------------


def _counted() -> dict[str, Any]:
    within = {"mirror": OuterRef("mirror")}
    moved = Promotion.objects.filter(**within, at__gte=OuterRef("began_at"), at__lt=OuterRef("ends_at"), is_tag=False)
    moved = moved.exclude(to_commit="").exclude(why__in=NO_NEWS)
    runs = Run.objects.filter(**within, started_at__gte=OuterRef("began_at"), started_at__lt=OuterRef("ends_at"))
    commits = MirrorCommit.objects.filter(**within)
    seen = commits.filter(commit__repository=F("mirror__source"), **_within("commit__seen_at"))
    return {
        "promoted": _number(moved, Count("to_commit", distinct=True)),
        "checks": _number(runs, Count("pk")),
        "commits_seen": _number(seen, Count("pk")),
        # Each by an index of its own. One that was passed by, and became a head later, is counted once more.
        "commits_mirrored": _number(commits.filter(**_within("promoted_at")), Count("pk"))
        + _number(commits.filter(**_within("superseded_at")), Count("pk")),
    }


def _within(field: str) -> dict[str, Any]:
    return {f"{field}__gte": OuterRef("began_at"), f"{field}__lt": OuterRef("ends_at")}


def _number(rows: QuerySet[Any], number: Count) -> Coalesce:
    grouped = rows.order_by().values("mirror").annotate(number=number).values("number")
    return Coalesce(Subquery(grouped), 0)


def _is_over(now: datetime) -> Case:
    over = When(ends_at__lt=now - SETTLED_AFTER, then=Value(True))
    return Case(over, default=Value(False), output_field=BooleanField())
