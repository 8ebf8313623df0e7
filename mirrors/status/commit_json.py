"""The commits of a mirror as the API gives them: how far each has come, what of it is covered, and moves of refs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.models import F, Q, QuerySet

from core.mirroring.explain.commit_steps import last_step, step_times
from core.mirroring.facts import CommitFacts, Waived
from mirrors.models import Commit, Mirror, MirrorCommit, Promotion
from mirrors.queries.coverage import CommitCoverage
from mirrors.queries.find_commit import find_branch
from mirrors.queries.missing import FACTS
from web.serializers import rfc3339

STAGES = {
    "seen": "Seen",
    "recorded": "Record copied",
    "metadata": "Metadata arrived",
    "validated": "Objects validated",
    "superseded": "Superseded",
    "promoted": "Promoted",
}
"""How far a commit may have come, by the codes of its steps."""
_STEPS = [code for code in STAGES if code != "seen"]


def commits_of(mirror: Mirror, *, stage: str = "", data: str = "") -> QuerySet[MirrorCommit]:
    """A mirror's commits that have come so far, and no further; with their records."""
    rows = mirror.commits.select_related("commit", "waiver")
    if data:
        rows = rows.filter(data=data)
    return rows.filter(_reached(stage)) if stage else rows


def commits_of_branch(rows: QuerySet[MirrorCommit], mirror: Mirror, branch: str) -> QuerySet[MirrorCommit]:
    """Those that a source's branch is known to have pointed to, each with its `position`. Raises NotFound."""
    seen = Q(commit__candidacies__branch=find_branch(mirror, branch), commit__candidacies__position__gte=0)
    return rows.filter(seen).annotate(position=F("commit__candidacies__position"))


def _reached(stage: str) -> Q:
    """Its last step is this one."""
    further = _STEPS[_STEPS.index(stage) + 1 :] if stage in _STEPS else _STEPS
    reached = {f"{stage}_at__isnull": False} if stage in _STEPS else {}
    return Q(**reached, **{f"{step}_at": None for step in further})


def facts_of(row: MirrorCommit) -> CommitFacts:
    """A row as the explanations know it, without what it lacks."""
    given = row.waiver
    waived = Waived(by=given.given_by, reason=given.reason, at=given.given_at) if given else None
    return CommitFacts(commit_id=row.commit.sha, waived=waived, **{name: getattr(row, name) for name in FACTS})


def commit_json(commit: Commit, facts: CommitFacts) -> dict[str, Any]:
    """A commit at a mirror: its record, how it stands there, and when it took each step.

    `history`: all that it descends from is in order. `ladder`: five steps, the last is `superseded` when the branch
    passed it by; `stage` is the last step that is done.
    """
    steps = step_times(facts, commit.seen_at)
    return {
        "id": commit.sha,
        "parents": commit.parents,
        "message": commit.message,
        "committer": commit.committer,
        "created_at": rfc3339(_moment(commit.creation_date)),
        "metarange": commit.metarange_id or None,
        "record": facts.record,
        "data": facts.data,
        "history": facts.history,
        "promotable": facts.promotable,
        "waived": _waived_json(facts.waived),
        "detail": facts.detail,
        "stage": last_step(steps),
        "ladder": [{"step": code, "name": name, "at": rfc3339(at)} for code, name, at in steps],
        "recorded_at": rfc3339(facts.recorded_at),
        "metadata_at": rfc3339(facts.metadata_at),
        "validated_at": rfc3339(facts.validated_at),
        "promoted_at": rfc3339(facts.promoted_at),
        "superseded_at": rfc3339(facts.superseded_at),
    }


def coverage_json(coverage: CommitCoverage | None, now: datetime) -> dict[str, Any] | None:
    """What of a commit is covered: counts, the least depth, and how old the oldest check is."""
    if coverage is None:
        return None
    covered = coverage.covered
    return {
        "ranges": coverage.ranges,
        "entries": coverage.entries,
        "covered_ranges": covered.ranges,
        "covered_entries": covered.entries,
        "covered_bytes": covered.bytes,
        "depth": covered.depth,
        "oldest_check_at": rfc3339(covered.oldest),
        "latest_check_at": rfc3339(covered.latest),
        "oldest_check_age_seconds": round((now - covered.oldest).total_seconds(), 3) if covered.oldest else None,
    }


def _moment(creation_date: int) -> datetime | None:
    """What a record says of its making, if that is a date at all."""
    try:
        return datetime.fromtimestamp(creation_date, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _waived_json(waived: Waived | None) -> dict[str, Any] | None:
    return {"given_by": waived.by, "reason": waived.reason, "given_at": rfc3339(waived.at)} if waived else None


def promotion_json(move: Promotion) -> dict[str, Any]:
    """One move of a branch or a tag. No commit: there was none before, or is none after."""
    return {
        "id": move.pk,
        "branch": None if move.is_tag else move.branch,
        "tag": move.branch if move.is_tag else None,
        "from": move.from_commit or None,
        "to": move.to_commit or None,
        "why": move.why,
        "at": rfc3339(move.at),
    }
