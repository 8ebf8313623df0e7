"""The commits of one branch at a mirror, with the five steps of their lives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F

from core.mirroring.explain.commit_steps import CommitStep, climb
from core.mirroring.explain.stage import stage_of
from core.mirroring.facts import CommitFacts, Waived
from core.mirroring.promotion import MOVED_BY_OTHERS, UNKNOWN, Why
from core.mirroring.states import Stage
from mirrors.models import Candidate, Mirror, Promotion
from mirrors.queries.candidates import candidates_of
from mirrors.queries.missing import commit_facts
from mirrors.transitions.rpo_breaches import targets

SHOWN = 10
NEWEST = 3
FOREIGN = (*MOVED_BY_OTHERS, Why.WRITTEN, Why.UNDONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitReading:
    """A commit of a branch at a mirror, with the five steps of its life."""

    commit_id: str
    message: str
    committer: str
    position: int
    fast_forward: bool = True
    inferred: bool = False
    stage: Stage
    steps: Sequence[CommitStep]
    waived: Waived | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchCommits:
    """A branch's commits, newest first. `more_...` is how many are left out: of the pending ones after the third.

    `foreign` are the last times that somebody else moved the branch, or wrote to it.
    """

    pending: Sequence[CommitReading]
    mirrored: Sequence[CommitReading]
    more_pending: int
    more_mirrored: int
    foreign: Sequence[Promotion] = ()


def branch_commits(mirror: Mirror, branch: str, now: datetime, limit: int = SHOWN) -> BranchCommits:
    """The newest mirrored commits of a branch, and of those pending the newest few and the oldest, `limit` of each."""
    rows = candidates_of(mirror, branch).select_related("commit").order_by("-position")
    if branch not in mirror.selection:
        rows = rows.filter(position__lte=F("reached"))  # where the source went on to is no concern of the mirror's
    ahead, behind = rows.filter(position__gt=F("reached")), rows.filter(position__lte=F("reached"))
    number = ahead.count()
    pending = list(ahead[:limit]) if number <= limit else [*ahead[:NEWEST], *ahead.reverse()[: limit - NEWEST][::-1]]
    mirrored = list(behind[:limit])
    facts = commit_facts(mirror, [row.commit.sha for row in (*pending, *mirrored)])
    head = mirrored[0].position if mirrored else None
    return BranchCommits(
        pending=[_commit_reading(mirror, row, facts, now, head) for row in pending],
        mirrored=[_commit_reading(mirror, row, facts, now, head) for row in mirrored],
        more_pending=number - len(pending),
        more_mirrored=behind.count() - len(mirrored),
        foreign=list(mirror.promotions.filter(branch=branch, is_tag=False, why__in=FOREIGN)[:NEWEST]),
    )


def _commit_reading(
    mirror: Mirror, row: Candidate, facts: dict[str, CommitFacts], now: datetime, head: int | None
) -> CommitReading:
    commit = facts.get(row.commit.sha)
    stage = stage_of(commit, now=now, targets=targets(mirror))
    if head is not None and row.position <= head:
        stage = Stage.HEAD if row.position == head else Stage.PAST
    steps = climb(commit, seen_at=row.seen_at, stage=stage, region=mirror.region, source_region=mirror.source.region)
    return CommitReading(
        commit_id=row.commit.sha,
        message=row.commit.message,
        committer=row.commit.committer,
        position=row.position,
        fast_forward=row.fast_forward,
        inferred=row.position < UNKNOWN,
        stage=stage,
        steps=steps,
        waived=commit.waived if commit else None,
    )
