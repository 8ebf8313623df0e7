"""The state of a task: one rule for a row that was read and for a query, and how people read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, Count, IntegerField, Max, Min, Q, QuerySet, Value, When

from console import exports_summary
from jobs import kinds
from jobs.models import Duty
from jobs.querysets import DutyQuerySet
from jobs.queue_status import SILENT_AFTER

STATES = {
    "failed": "Failed",
    "failing": "Failing",
    "held": "Running",
    "overdue": "Overdue",
    "due": "Waiting",
    "resting": "Idle",
}
"""States of a task, those that need somebody first, and how people read them."""
TONES = {"failed": "bad", "failing": "warn", "held": "busy", "overdue": "bad"}
ICONS = {"failed": "cross", "failing": "retry", "held": "arrows", "overdue": "clock", "due": "clock"}
WRONG = ("failed", "failing", "overdue")
A_MINUTE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSummary:
    """All tasks of a kind: how many there are, are wrong, ran in the last minute, and when the next one is due."""

    name: str
    total: int
    failed: int
    failing: int
    overdue: int
    lately: int
    ended_at: datetime | None
    next_at: datetime | None

    @property
    def label(self) -> str:
        """What people call it."""
        return kinds.label_of(self.name)


def state_of(duty: Duty, now: datetime, *, failed: bool = False) -> str:
    """One of `STATES`; `failed`: what it is about has failed and waits for somebody, so the task does nothing."""
    if duty.until and duty.until > now:
        return "held"
    if failed:
        return "failed"
    if duty.failures:
        return "failing"
    if duty.due_at > now:
        return "resting"
    return "overdue" if now - duty.due_at > SILENT_AFTER else "due"


def conditions(now: datetime) -> dict[str, Q]:
    """What rows of each state have."""
    at_rest = Q(until=None) | Q(until__lte=now)
    failed = Q(kind="export", subject__in=exports_summary.failed_subjects())
    free = at_rest & ~failed & Q(failures=0)
    return {
        "held": Q(until__gt=now),
        "failed": at_rest & failed,
        "failing": at_rest & ~failed & Q(failures__gt=0),
        "overdue": free & Q(due_at__lt=now - SILENT_AFTER),
        "due": free & Q(due_at__gte=now - SILENT_AFTER, due_at__lte=now),
        "resting": free & Q(due_at__gt=now),
    }


def in_state(rows: DutyQuerySet, state: str, now: datetime) -> DutyQuerySet:
    """Those in one of `STATES`; all of them for another word."""
    chosen = conditions(now)
    return rows.filter(chosen[state]) if state in chosen else rows


def wrong(rows: DutyQuerySet, now: datetime) -> DutyQuerySet:
    """Those that have failed, fail, or are overdue."""
    chosen = conditions(now)
    return rows.filter(chosen["failed"] | chosen["failing"] | chosen["overdue"])


def failed_first(rows: DutyQuerySet) -> QuerySet[Any]:
    """Those that wait for somebody, then those that fail, then by when they are due."""
    failed = Q(kind="export", subject__in=exports_summary.failed_subjects())
    rank = Case(When(failed, then=Value(1)), default=Value(0), output_field=IntegerField())
    return rows.order_by(rank.desc(), "-failures", "due_at", "pk")


def by_kind(rows: DutyQuerySet, now: datetime) -> Sequence[KindSummary]:
    """All tasks, a row for each kind."""
    chosen = conditions(now)
    lately = Q(started_at__gt=now - A_MINUTE) | Q(ended_at__gt=now - A_MINUTE) | Q(until__gt=now)
    counted = (
        rows.order_by("kind")
        .values("kind")
        .annotate(
            total=Count("pk"),
            **{f"n_{state}": Count("pk", filter=chosen[state]) for state in WRONG},
            n_lately=Count("pk", filter=lately),
            last_ended=Max("ended_at"),
            next_due=Min("due_at", filter=~chosen["failed"]),
        )
    )
    return [
        KindSummary(
            name=row["kind"],
            total=row["total"],
            failed=row["n_failed"],
            failing=row["n_failing"],
            overdue=row["n_overdue"],
            lately=row["n_lately"],
            ended_at=row["last_ended"],
            next_at=row["next_due"],
        )
        for row in counted
    ]
