"""What was measured of a mirror over a period, in steps of equal length: for its page and the API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max, OuterRef, QuerySet, Subquery

from core.errors import Invalid
from core.mirroring.promotion import MOVED_BY_OTHERS, Why
from core.mirroring.rpo import Stand, worst_lags
from db.chunks import chunks
from mirrors.models import Candidate, Measure, Mirror, Promotion
from mirrors.transitions.measures import LONG, SHORT, began
from web.serializers import rfc3339


@dataclass(frozen=True, slots=True)
class Period:
    """How far back, in steps of so many minutes, each from measures of so many."""

    back: timedelta
    step: int
    made_of: int


PERIODS = {
    "1h": Period(timedelta(hours=1), 5, SHORT),
    "24h": Period(timedelta(hours=24), 5, SHORT),
    "7d": Period(timedelta(days=7), 60, LONG),
    "30d": Period(timedelta(days=30), 240, LONG),
    "90d": Period(timedelta(days=90), 720, LONG),
}
DEFAULT = "24h"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """What was measured between two moments; None is what nobody knows. The last one may still go on."""

    at: datetime
    until: datetime
    lag_seconds: float | None = None
    backlog: int | None = None
    backlog_last: int | None = None
    missing: int | None = None
    promoted: int | None = None
    checks: int | None = None
    objects: int | None = None
    bytes: int | None = None
    seen: int | None = None
    mirrored: int | None = None
    new_objects: int | None = None
    new_bytes: int | None = None
    branch_lag: float | None = None
    known: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """Every step of a period, the oldest first. `read_at` is when lag was last read in it."""

    period: Period
    steps: Sequence[MeasuredStep]
    read_at: datetime | None


def measured(mirror: Mirror, period: Period, now: datetime) -> Measured:
    """In one query. Steps begin at whole multiples of their length; the last one holds `now`."""
    length = timedelta(minutes=period.step)
    number = period.back // length
    last = began(now, period.step)
    starts = [last - n * length for n in reversed(range(number))]
    rows: list[list[Measure]] = [[] for _ in starts]
    measures = list(mirror.measures.filter(minutes=period.made_of, began_at__gte=starts[0], began_at__lte=now))
    for row in measures:
        rows[(row.began_at - starts[0]) // length].append(row)
    steps = [_step(at, at + length, step_measures) for at, step_measures in zip(starts, rows, strict=True)]
    return Measured(period, steps, max((row.read_at for row in measures if row.read_at), default=None))


def with_branch(measures: Measured, mirror: Mirror, branch: str, now: datetime) -> Measured:
    """The same with how late one branch was, from its moves. That it was not late is known only where lag was read."""
    first, step = measures.steps[0].at, timedelta(minutes=measures.period.step)
    lags = worst_lags(stands_of(mirror, branch, first), first, step, len(measures.steps), now)
    steps = [
        replace(step, branch_lag=lag if lag or step.lag_seconds is not None else None)
        for step, lag in zip(measures.steps, lags, strict=True)
    ]
    return replace(measures, steps=steps)


def check_branch(mirror: Mirror, branch: str) -> None:
    """Raises Invalid if neither the source nor the mirror ever had it."""
    known = mirror.source.branches.filter(name=branch).exists() or mirror.branches.filter(name=branch).exists()
    if not known:
        raise Invalid(f"there is no branch '{branch[:80]}' at {mirror.name}", field="branch")


def _step(at: datetime, until: datetime, rows: Sequence[Measure]) -> MeasuredStep:
    """Some measures, the oldest first, as one."""
    return MeasuredStep(
        at=at,
        until=until,
        lag_seconds=_of(max, (row.lag_seconds for row in rows)),
        backlog=_of(max, (row.backlog for row in rows)),
        backlog_last=_of(lambda them: them[-1], (row.backlog_last for row in rows)),
        missing=_of(max, (row.missing for row in rows)),
        promoted=_of(sum, (row.promoted for row in rows)),
        checks=_of(sum, (row.checks for row in rows)),
        objects=_of(sum, (row.objects_checked for row in rows)),
        bytes=_of(sum, (row.bytes_checked for row in rows)),
        seen=_of(sum, (row.commits_seen for row in rows)),
        mirrored=_of(sum, (row.commits_mirrored for row in rows)),
        new_objects=_of(sum, (row.objects_new for row in rows if _tells_new(row))),
        new_bytes=_of(sum, (row.bytes_new for row in rows if _tells_new(row))),
        known=bool(rows),
    )


def _tells_new(row: Measure) -> bool:
    """Whether it counted what is new: an older version's did not."""
    return row.commits_seen is not None or row.objects_new > 0


def _of(how: Callable[[list[Any]], Any], values: Iterable[Any]) -> Any:
    """Those that are known put together; None if none is."""
    known = [value for value in values if value is not None]
    return how(known) if known else None


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def step_json(step: MeasuredStep) -> dict[str, Any]:
    """One step as the API gives it."""
    return {
        "from": rfc3339(step.at),
        "until": rfc3339(step.until),
        "lag_seconds": _rounded(step.lag_seconds),
        "branch_lag_seconds": _rounded(step.branch_lag),
        "backlog_commits": step.backlog,
        "backlog_commits_last": step.backlog_last,
        "missing": step.missing,
        "promoted_commits": step.promoted,
        "checks": step.checks,
        "objects_checked": step.objects,
        "bytes_checked": step.bytes,
        "seen_commits": step.seen,
        "mirrored_commits": step.mirrored,
        "new_objects": step.new_objects,
        "new_bytes": step.new_bytes,
    }


# --- where one branch stood ------------------------------------------------------------------------------------------


MOST_MOVES = 20_000
"""So many moves are looked at; of the time before them nothing is told."""
_OTHERS = (*MOVED_BY_OTHERS, Why.WRITTEN)


def stands_of(mirror: Mirror, branch: str, since: datetime) -> list[Stand]:
    """In order of time: from the last move before `since` on. A few queries, however many moves there are."""
    moves = _moves(mirror, branch).order_by("-at", "-pk")
    rows = list(moves.filter(at__gte=since)[:MOST_MOVES])
    if len(rows) < MOST_MOVES:
        rows += moves.filter(at__lt=since)[:1]
    rows.reverse()
    next_seen = _seen(mirror, branch, [row.reached + 1 for row in rows if row.reached is not None])
    return [_stand(row, next_seen) for row in rows]


def _moves(mirror: Mirror, branch: str) -> QuerySet[Promotion]:
    """Each with the position that the branch had `reached`: None if the source's branch was never there."""
    rows = Candidate.objects.filter(
        branch__repository=mirror.source_id,
        branch__name=OuterRef("branch"),
        commit__repository=mirror.source_id,
        commit__sha=OuterRef("to_commit"),
        seen_at__lte=OuterRef("at"),
    )
    reached = rows.order_by().values("branch").annotate(last=Max("position")).values("last")
    return mirror.promotions.filter(branch=branch, is_tag=False).annotate(reached=Subquery(reached))


def _seen(mirror: Mirror, branch: str, positions: Sequence[int]) -> dict[int, datetime]:
    rows = Candidate.objects.filter(branch__repository=mirror.source_id, branch__name=branch).order_by()
    seen: dict[int, datetime] = {}
    for some in chunks(sorted({position for position in positions if position >= 0})):
        seen.update(rows.filter(position__in=some).values_list("position", "seen_at"))
    return seen


def _stand(row: Promotion, next_seen: dict[int, datetime]) -> Stand:
    reached: int | None = row.reached  # type: ignore[attr-defined]
    if reached is None or not row.to_commit or row.why in _OTHERS:
        return Stand(row.at, known=False)
    return Stand(row.at, next_seen.get(reached + 1))
