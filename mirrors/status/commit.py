"""One commit at one mirror, as its page and the list of commits tell of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import QuerySet

from core.errors import LakeMirrorError
from core.mirroring.explain.commit_steps import CommitStep, climb
from core.mirroring.explain.commit_text import SETTLED, explain_commit
from core.mirroring.explain.stage import stage_of
from core.mirroring.explain.standing import judge_standing
from core.mirroring.explain.verdict import Verdict
from core.mirroring.facts import CommitFacts
from core.mirroring.states import Stage
from core.text.phrases import Phrase
from mirrors.models import Candidate, Commit, Mirror, MirrorCommit
from mirrors.queries.certificates import Certificate, certify
from mirrors.queries.coverage import CommitCoverage, commit_coverage
from mirrors.queries.missing import Commits, commit_facts
from mirrors.queries.proof_facts import is_at_its_store
from mirrors.status.branch_commits import CommitReading
from mirrors.status.facts import gather
from mirrors.transitions.rpo_breaches import targets


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCommit:
    """A commit with all that is known of it. `urgent`: somebody put it first; `settled`: nothing is left to do."""

    commit: Commit
    facts: CommitFacts
    stage: Stage
    steps: Sequence[CommitStep]
    explanation: Phrase
    heads: Sequence[str]
    branches: Sequence[str]
    coverage: CommitCoverage | None
    urgent: bool
    settled: bool


def read_commit(mirror: Mirror, commit: Commit, now: datetime) -> OneCommit:
    """How a commit stands at a mirror that has it."""
    key = (mirror.pk, commit.sha)
    known = Commits([key], [key])
    facts, heads = known.facts[key], list(mirror.branches.filter(head=commit.sha).values_list("name", flat=True))
    branches = list(_seen_in(mirror, [commit.pk]).values_list("branch__name", flat=True).distinct()[:5])
    stage = _stage(facts, mirror, now, is_head=bool(heads), expected=bool(branches))
    if facts.data == MirrorCommit.Data.COMPLETE and not is_at_its_store(mirror):
        facts = replace(facts, data=MirrorCommit.Data.UNKNOWN)  # it was complete at another store
    explanation = explain_commit(
        facts,
        stage=stage,
        heads=heads,
        needs=known.needed_by(key),
        region=mirror.region,
        source_region=mirror.source.region,
        standing=None if stage in SETTLED else _standing(mirror, now),
    )
    row = mirror.commits.filter(commit=commit)
    return OneCommit(
        commit=commit,
        facts=facts,
        stage=stage,
        steps=_climb(facts, commit, stage, mirror),
        explanation=explanation,
        heads=heads,
        branches=branches,
        coverage=commit_coverage(mirror, commit.metarange_id) if facts.metadata_at else None,
        urgent=row.filter(urgency__gt=0).exists(),
        settled=mirror.commits.settled().filter(commit=commit).exists(),
    )


def _standing(mirror: Mirror, now: datetime) -> Verdict | None:
    """What holds for the whole mirror, like a pause."""
    return judge_standing(gather([mirror], now).facts[mirror.pk], now, targets(mirror))


def certificate_of(mirror: Mirror, reading: OneCommit) -> tuple[Certificate | None, str]:
    """What was proven of a commit, or why that can't be told now; neither for one that is not complete."""
    if not reading.facts.promotable:
        return None, ""
    try:
        return certify(mirror, reading.commit), ""
    except LakeMirrorError as error:
        return None, str(error)


def ladder_rows(mirror: Mirror, rows: Sequence[MirrorCommit], now: datetime) -> list[CommitReading]:
    """A page of a mirror's commits with their ladders: so many queries however many rows."""
    shas = [row.commit.sha for row in rows]
    facts = commit_facts(mirror, shas)
    heads = set(mirror.branches.filter(head__in=shas).values_list("head", flat=True))
    expected = set(_seen_in(mirror, [row.commit_id for row in rows]).order_by().values_list("commit_id", flat=True))
    return [_ladder_row(mirror, row, facts[row.commit.sha], heads, row.commit_id in expected, now) for row in rows]


def _ladder_row(
    mirror: Mirror, row: MirrorCommit, facts: CommitFacts, heads: Collection[str], expected: bool, now: datetime
) -> CommitReading:
    commit = row.commit
    stage = _stage(facts, mirror, now, is_head=commit.sha in heads, expected=expected)
    return CommitReading(
        commit_id=commit.sha,
        message=commit.message,
        committer=commit.committer,
        position=row.pk,
        stage=stage,
        steps=_climb(facts, commit, stage, mirror),
        waived=facts.waived,
    )


def _seen_in(mirror: Mirror, commits: Sequence[int]) -> QuerySet[Candidate]:
    """Where branches of the source were seen pointing to some commits."""
    return Candidate.objects.filter(
        commit_id__in=commits, branch__repository=mirror.source_id, branch__gone_at=None, position__gte=0
    ).order_by("branch__name")


def _stage(facts: CommitFacts, mirror: Mirror, now: datetime, *, is_head: bool, expected: bool) -> Stage:
    """How far it has come. One that is whole, and that no branch was seen to point to, waits for nothing."""
    if is_head:
        return Stage.HEAD
    if facts.promoted_at or facts.superseded_at or (not expected and facts.data in ("complete", "unchecked")):
        return Stage.PAST
    return stage_of(facts, now=now, targets=targets(mirror))


def _climb(facts: CommitFacts, commit: Commit, stage: Stage, mirror: Mirror) -> Sequence[CommitStep]:
    return climb(facts, seen_at=commit.seen_at, stage=stage, region=mirror.region, source_region=mirror.source.region)
