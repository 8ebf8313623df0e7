"""Branches of the source that a mirror does not follow: what was made of them here stays as it is, or is deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import Q

from core.mirroring.promotion import CandidateCommit, PromotionFacts
from db.chunks import chunks
from mirrors.models import Candidate, Mirror, MirrorBranch, MoveIntent, SourceBranch
from mirrors.queries.own_moves import has_put, where_put

FEW = 200


def facts_of_unselected(
    mirror: Mirror,
    branches: Sequence[SourceBranch],
    mirror_branches: Mapping[str, MirrorBranch],
    heads: Mapping[str, str],
    intents: Mapping[str, Mapping[str, MoveIntent]],
) -> list[tuple[SourceBranch, PromotionFacts]]:
    """Facts about those of which something is to be done: deleted, or put back to where they stood."""
    present = [
        b for b in branches if (not mirror_branches[b.name].stray if b.name in mirror_branches else b.name in heads)
    ]
    standing = _standing(present, mirror_branches, heads)
    gathered = []
    for branch in present:
        row, head = mirror_branches.get(branch.name), heads.get(branch.name, "")
        stands = standing.get(branch.pk) or where_put(row)
        if row and (row.delete_asked or (stands and stands.commit_id != head)):
            candidates = [] if row.delete_asked or not stands else [stands]
            gathered.append((branch, _facts(row, head, candidates, anew=branch.pk not in standing)))
        elif row is None and (head in intents[branch.name] or has_put(mirror, branch.name, head)):
            # Made just before it was unselected, and not noted; or back there. Any other is somebody's own.
            dropped = any(intent.delete_asked for intent in intents[branch.name].values())
            gathered.append((branch, PromotionFacts([stands] if stands else [], head=head, dropped=dropped)))
    return gathered


def _facts(row: MirrorBranch, head: str, candidates: Sequence[CandidateCommit], *, anew: bool) -> PromotionFacts:
    return PromotionFacts(
        candidates,
        head=head,
        noted=row.head,
        position=row.position,
        misplaced=row.misplaced,
        dropped=row.delete_asked,
        anew=anew,
    )


def _standing(
    branches: Sequence[SourceBranch], mirror_branches: Mapping[str, MirrorBranch], heads: Mapping[str, str]
) -> dict[int, CandidateCommit]:
    """The candidate that each of these stands at: all that it may show while it is not selected."""
    candidates: dict[int, CandidateCommit] = {}
    for some in chunks(branches, FEW):
        wanted = Q(pk__in=[])
        for branch in some:
            wanted |= Q(branch=branch.pk) & _stands_at(mirror_branches.get(branch.name), heads.get(branch.name, ""))
        rows = Candidate.objects.filter(wanted).order_by("position")
        for key, sha, position in rows.values_list("branch_id", "commit__sha", "position"):
            candidates[key] = CandidateCommit(sha, position)
    return candidates


def _stands_at(row: MirrorBranch | None, head: str) -> Q:
    if row is None:
        return Q(commit__sha=head)
    return Q(position=row.position) if row.position >= 0 else Q(commit__sha=row.head)
