"""Where a mirror's branch stood over time, and since when the next commit waited."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Max, OuterRef, QuerySet, Subquery

from core.mirroring.promotion import MOVED_BY_OTHERS, Why
from core.mirroring.rpo import Stand
from db.chunks import chunks
from mirrors.models import Candidate, Mirror, Promotion

MOST = 20_000
"""So many moves are looked at; of the time before them nothing is told."""
_OTHERS = (*MOVED_BY_OTHERS, Why.WRITTEN)


def stands_of(mirror: Mirror, branch: str, since: datetime) -> list[Stand]:
    """In order of time: from the last move before `since` on. A few queries, however many moves there are."""
    moves = _moves(mirror, branch).order_by("-at", "-pk")
    rows = list(moves.filter(at__gte=since)[:MOST])
    if len(rows) < MOST:
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
