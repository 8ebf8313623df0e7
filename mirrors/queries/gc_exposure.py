"""What may the source's garbage collection take, or has taken, that a mirror still waits for?

Its rules are not read: so this tells what is gone, and which pending commits no branch of the source leads to any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Min, OuterRef, Q, Subquery

from core.mirroring.unreplicated import Painting
from db.chunks import chunks
from mirrors.models import Blocker, Candidate, Mirror, MirrorCommit
from mirrors.queries.branch_positions import positions_of
from mirrors.queries.proof_facts import is_at_its_store
from mirrors.queries.unreplicated import Missing, MissingThings, descend

MOST_FORMER = 200
EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class Gone:
    """Things that are gone at the source and have not arrived: how many of each kind, since when, some of them.

    `commits` need nothing else; `heads` (branch, commit) can't be promoted for it.
    """

    kinds: dict[str, int]
    since: datetime | None
    examples: Sequence[Blocker]
    commits: int
    heads: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Former:
    """A commit that a branch pointed to, until it was `moved` otherwise than forward, or `deleted`."""

    branch: str
    commit: str
    why: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Unreached:
    """A commit that has not arrived, and the last branch that led to it."""

    key: int
    sha: str
    data: str
    seen_at: datetime
    last: Former


@dataclass(frozen=True, slots=True)
class AllUnreached:
    """Commits that have not arrived and that no branch leads to, the newest first; `at_least` if there may be more:
    where the history of a branch can't be read, and where the mirror's region has another store, nobody knows."""

    commits: Sequence[Unreached]
    missing: Missing
    at_least: bool


# --- gone -------------------------------------------------------------------------------------------------------------


def gone_of(mirror: Mirror) -> Gone:
    """What is gone at the source."""
    lost = mirror.blockers.needed().filter(gone_at_source=True)
    counted = lost.order_by().values_list("kind").annotate(Count("key", distinct=True), Min("first_seen"))
    rows = list(counted)
    return Gone(
        kinds={kind: number for kind, number, _ in rows},
        since=min((first for _, _, first in rows), default=None),
        examples=list(lost[:EXAMPLES]),
        commits=_commits_without(mirror) if rows else 0,
        heads=_heads_without(mirror) if rows else [],
    )


def _commits_without(mirror: Mirror) -> int:
    """Commits that lack something which is gone at the source; not those that only lack what somebody waived."""
    gone = mirror.commits.filter(data=MirrorCommit.Data.GONE)
    if not mirror.blockers.filter(waived=True).exists():
        return gone.count()
    lost = set(mirror.blockers.filter(gone_at_source=True).order_by().values_list("holder_id", flat=True))
    return sum(not lost.isdisjoint(waits_for) for waits_for in gone.values_list("waits_for", flat=True).iterator())


def _heads_without(mirror: Mirror) -> list[tuple[str, str]]:
    """Branches whose head at the source lacks something that is gone."""
    behind = [(place.key[1], place.source.head) for place in positions_of(mirror) if place.behind and place.source]
    waits_for: dict[str, list[str]] = {}
    for some in chunks(sorted({head for _, head in behind})):
        rows = mirror.commits.filter(commit__sha__in=some, data__in=[MirrorCommit.Data.GONE, MirrorCommit.Data.WAITING])
        waits_for.update(rows.values_list("commit__sha", "waits_for"))
    lacking: set[str] = set()
    for some in chunks(sorted({holder for ids in waits_for.values() for holder in ids})):
        lost = mirror.blockers.held_by(some).filter(gone_at_source=True)
        lacking.update(lost.order_by().values_list("holder_id", flat=True).distinct())
    return [(branch, head) for branch, head in behind if not lacking.isdisjoint(waits_for.get(head, ()))]


# --- may go -----------------------------------------------------------------------------------------------------------


def unreached_of(mirror: Mirror) -> AllUnreached:
    """Commits that the mirror has not got yet, and that only former heads of the source's branches lead to."""
    former = _former_heads(mirror)
    more, former = len(former) > MOST_FORMER, former[:MOST_FORMER]
    live = mirror.source.branches.filter(gone_at=None, missing_since=None).values_list("head", flat=True)
    painting = Painting([[head.commit] for head in former], live)
    groups = {key: groups for groups, key, _, _ in descend(mirror.source, painting)}
    unreached = [
        Unreached(last=_last_of(former, groups[row["key"]]), **row)
        for some in chunks(sorted(groups))
        for row in _open(mirror, some)
    ]
    unreached.sort(key=lambda commit: -commit.key)
    missing = MissingThings(mirror, [commit.key for commit in unreached]).missing_of(
        [commit.key for commit in unreached]
    )
    more = more or not painting.done or missing.at_least or _is_unsure(mirror)
    return AllUnreached(unreached, missing, more)


def _is_unsure(mirror: Mirror) -> bool:
    """Whether nobody knows where a branch of the source leads to now, or what the mirror has at its new store."""
    unread = mirror.source.branches.filter(gone_at=None).exclude(unread_head="")
    return not is_at_its_store(mirror) or unread.exists()


def _open(mirror: Mirror, keys: Sequence[int]) -> list[dict[str, Any]]:
    rows = mirror.commits.filter(commit_id__in=keys, data__in=[MirrorCommit.Data.UNKNOWN, MirrorCommit.Data.WAITING])
    return list(rows.values("data", key=F("commit_id"), sha=F("commit__sha"), seen_at=F("commit__seen_at")))


def _last_of(former: Sequence[Former], groups: int) -> Former:
    """Of the former heads that lead to a commit the one that was left last."""
    return max((head for number, head in enumerate(former) if groups >> number & 1), key=lambda head: head.since)


def _former_heads(mirror: Mirror) -> list[Former]:
    """The last ones, up to one more than are gone through."""
    heads = [*_moved(mirror), *_deleted(mirror)]
    return sorted(heads, key=lambda head: head.since, reverse=True)[: MOST_FORMER + 1]


def _moved(mirror: Mirror) -> list[Former]:
    """Where live branches stood before they moved otherwise than forward."""
    before = Candidate.objects.filter(branch=OuterRef("branch"), position=OuterRef("position") - 1)
    moves = Candidate.objects.filter(branch__repository=mirror.source_id, branch__gone_at=None, fast_forward=False)
    rows = moves.annotate(former=Subquery(before.values("commit__sha")[:1])).order_by("-seen_at", "-pk")
    some = rows.values_list("branch__name", "former", "seen_at")[: MOST_FORMER + 1]
    return [Former(branch, sha, "moved", at) for branch, sha, at in some if sha]


def _deleted(mirror: Mirror) -> list[Former]:
    """Where branches stood that are there no more, or were not at the last look."""
    rows = mirror.source.branches.filter(Q(gone_at__isnull=False) | Q(missing_since__isnull=False))
    some = rows.order_by("-missing_since").values_list("name", "head", "missing_since", "gone_at")[: MOST_FORMER + 1]
    return [Former(name, head, "deleted", since or at) for name, head, since, at in some if head]
