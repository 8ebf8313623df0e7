"""Queries for the commits that branches of a source pointed to: which are ahead of a mirror, which led to its heads?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Case, F, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from core.mirroring.promotion import UNKNOWN
from mirrors.models import Candidate, Mirror, MirrorBranch
from mirrors.queries.missing import Key
from mirrors.queries.tables import named

PAST = 4

Spots = Mapping[Key, tuple[int, int]]
"""Branches of mirrors: the key of the source's branch, and the position that the mirror has reached, -1 for none."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A commit that a branch's mirror has not reached, and how many of those there are."""

    commit_id: str
    position: int
    seen_at: datetime
    number: int
    rewound: bool


# A join with a list of values: each branch is entered at its own position by the index, which no plan can miss.
_PENDING = """
WITH place (mirror_id, branch_id, reached) AS (VALUES {places}), pending AS (
    SELECT candidate.*, place.mirror_id AS mirror_id,
        row_number() OVER (PARTITION BY place.mirror_id, place.branch_id ORDER BY position) AS nth,
        row_number() OVER (PARTITION BY place.mirror_id, place.branch_id ORDER BY position DESC) AS nth_last,
        count(*) OVER (PARTITION BY place.mirror_id, place.branch_id) AS number,
        sum(CASE WHEN fast_forward THEN 0 ELSE 1 END) OVER (PARTITION BY place.mirror_id, place.branch_id) AS moves
    FROM place JOIN {candidate} candidate ON candidate.branch_id = place.branch_id AND position > place.reached
)
SELECT pending.*, record.sha AS sha FROM pending JOIN {commit} record ON record.id = pending.commit_id
WHERE nth <= {few} OR nth_last <= {few} ORDER BY position
"""
_PAST = """
WITH place (mirror_id, branch_id, reached) AS (VALUES {places})
SELECT candidate.*, place.mirror_id AS mirror_id, record.sha AS sha FROM place
JOIN {candidate} candidate ON candidate.branch_id = place.branch_id
    AND position >= 0 AND position <= place.reached AND position > place.reached - {few}
JOIN {commit} record ON record.id = candidate.commit_id ORDER BY position
"""


def pending_of(spots: Spots, *, few: int) -> dict[Key, list[Pending]]:
    """The first and the last `few` pending commits of each branch, oldest first."""
    pending: dict[Key, list[Pending]] = defaultdict(list)
    for key, row in _rows(_PENDING, spots, few):
        pending[key].append(Pending(row.sha, row.position, row.seen_at, row.number, row.moves > 0))
    return pending


def waiting_since(first: Pending, created_at: datetime) -> Pending:
    """The same at a mirror that was created then: nothing has waited for it before, however long ago it was seen."""
    return replace(first, seen_at=max(first.seen_at, created_at))


def count_unread(first: Pending | None, head: str, since: datetime) -> Pending:
    """What a branch lacks first if the source went on, by one commit at least, to a head that can't be read."""
    return replace(first, number=first.number + 1) if first else Pending(head, UNKNOWN, since, 1, rewound=False)


def past_of(spots: Spots) -> dict[Key, list[str]]:
    """The commits that led to each mirror's head, itself included, oldest first."""
    past: dict[Key, list[str]] = defaultdict(list)
    for key, row in _rows(_PAST, spots, PAST):
        past[key].append(row.sha)
    return past


def _rows(query: str, spots: Spots, few: int) -> Iterable[tuple[Key, Any]]:
    """Rows of a query for some branches, each with its key."""
    if not spots:
        return []
    keys = {(key[0], branch): key for key, (branch, _) in spots.items()}
    values = ", ".join(f"({key[0]:d}, {branch:d}, {reached:d})" for key, (branch, reached) in spots.items())
    rows: Any = Candidate.objects.raw(named(query, places=values, few=few))
    return ((keys[row.mirror_id, row.branch_id], row) for row in rows)


def candidates_of(mirror: Mirror, branch: str) -> QuerySet[Candidate]:
    """A branch's candidates, with where the mirror is on them (`reached`)."""
    mirror_branches = MirrorBranch.objects.filter(mirror=mirror, name=branch, stray=False)
    same = When(head=OuterRef("branch__head"), then=OuterRef("branch__position"))
    at = mirror_branches.order_by().annotate(at=Case(same, default=F("position"))).values("at")[:1]
    rows = Candidate.objects.filter(branch__repository=mirror.source_id, branch__name=branch, branch__gone_at=None)
    # What is only inferred is no part of the branch's line, but for a mirror that stands at such a commit.
    on_the_line = Q(position__gte=0) | Q(reached__lt=UNKNOWN)
    return rows.alias(reached=Coalesce(Subquery(at), Value(UNKNOWN))).filter(on_the_line)
