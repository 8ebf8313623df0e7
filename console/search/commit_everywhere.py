"""One commit wherever it is: at its source, and how far it has come at each mirror of that."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from core.mirroring.explain.commit_text import explain_commit
from core.mirroring.explain.stage import stage_of
from core.mirroring.facts import CommitFacts
from core.mirroring.states import Stage
from core.text.phrases import Phrase
from mirrors.models import Candidate, Mirror, MirrorBranch, MirrorCommit
from mirrors.queries.missing import Commits
from mirrors.status.readable_regions import RegionStatus, places_of
from mirrors.transitions.rpo_breaches import targets


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPlace:
    """A source or a mirror. Of a mirror that has the commit: `stage`, and what is going on or missing in a sentence."""

    place: RegionStatus
    mirror: Mirror | None = None
    stage: Stage | None = None
    explanation: Phrase | None = None


def commit_everywhere(mirrors: Sequence[Mirror], given: str, now: datetime) -> tuple[str, list[CommitPlace]]:
    """The commit whose id begins so, and each place of it, in a number of queries that doesn't grow. `mirrors` come
    with their sources. Raises NotFound, Invalid (too short) and Conflict (several commits)."""
    sha, places = places_of(mirrors, given)
    rows = MirrorCommit.objects.filter(commit__sha=sha, mirror__in=mirrors)
    having = set(rows.values_list("mirror_id", flat=True))
    told = _told([mirror for mirror in mirrors if mirror.pk in having], sha, now)
    by_name = {mirror.name: mirror for mirror in mirrors}
    found = []
    for place in places:
        mirror = by_name.get(place.repository) if place.role == "mirror" else None
        stage, explanation = told.get(mirror.pk, (None, None)) if mirror else (None, None)
        found.append(CommitPlace(place=place, mirror=mirror, stage=stage, explanation=explanation))
    return sha, found


def _told(mirrors: Sequence[Mirror], sha: str, now: datetime) -> dict[int, tuple[Stage, Phrase]]:
    keys = [(mirror.pk, sha) for mirror in mirrors]
    known = Commits(keys, keys)
    heads: dict[int, list[str]] = {}
    for pk, name in MirrorBranch.objects.filter(mirror__in=mirrors, head=sha).values_list("mirror_id", "name"):
        heads.setdefault(pk, []).append(name)
    seen = Candidate.objects.filter(
        commit__sha=sha, branch__repository__in={m.source_id for m in mirrors}, branch__gone_at=None, position__gte=0
    )
    expected = set(seen.order_by().values_list("branch__repository_id", flat=True))
    return {
        mirror.pk: _at(mirror, known, sha, heads.get(mirror.pk, []), expected, now)
        for mirror in mirrors
        if (mirror.pk, sha) in known.facts
    }


def _at(
    mirror: Mirror, known: Commits, sha: str, heads: Sequence[str], expected: Collection[int], now: datetime
) -> tuple[Stage, Phrase]:
    facts = known.facts[mirror.pk, sha]
    stage = _stage(facts, mirror, heads, mirror.source_id in expected, now)
    needs = known.needed_by((mirror.pk, sha))
    regions = {"region": mirror.region, "source_region": mirror.source.region}
    return stage, explain_commit(facts, stage=stage, heads=heads, needs=needs, **regions)


def _stage(facts: CommitFacts, mirror: Mirror, heads: Sequence[str], expected: bool, now: datetime) -> Stage:
    """As the page of the mirror's commit has it."""
    if heads:
        return Stage.HEAD
    if facts.promoted_at or facts.superseded_at or (not expected and facts.data in ("complete", "unchecked")):
        return Stage.PAST
    return stage_of(facts, now=now, targets=targets(mirror))
