"""What is known of a mirror's branches when a round begins: candidates, where each stands, what we did before."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from core.errors import Invalid
from core.mirroring.promotion import UNKNOWN, CandidateCommit, PromotionFacts, Why
from db.chunks import chunks
from mirroring.promote.ref_failures import Guard
from mirroring.promote.unselected import facts_of_unselected
from mirroring.sense.inferred import inferred_candidates
from mirrors.models import Candidate, Mirror, MirrorBranch, MirrorCommit, SourceBranch
from mirrors.queries.certificates import read_certificate
from mirrors.queries.own_moves import NOT_OUR_DOING, made_since, where_put
from mirrors.transitions.move_intents import intents_of

log = logging.getLogger("lakemirror.promote")


def gather_facts(mirror: Mirror, heads: dict[str, str], guard: Guard) -> list[tuple[SourceBranch, PromotionFacts]]:
    """What `choose_promotion` needs, for branches that are not at rest. Few queries, however many branches.

    `guard` keeps the failure of one, of which the destination's store can't tell what it has to, from the others.
    """
    mirror_branches, chosen = {b.name: b for b in mirror.branches.all()}, mirror.selection
    branches = list(mirror.source.branches.all())
    stirring = [b for b in branches if b.name in chosen and not _is_at_rest(b, mirror_branches.get(b.name), heads)]
    candidates = _candidates(stirring, mirror_branches)
    for default in (b for b in stirring if b.name == mirror.source.default_branch and b.gone_at is None):
        inferred = inferred_candidates(mirror, mirror_branches.get(default.name), heads.get(default.name, ""))
        candidates[default.pk] = inferred + candidates[default.pk]
    followed = []
    for branch in stirring:
        row, head = mirror_branches.get(branch.name), heads.get(branch.name, "")
        followed.append((branch, _facts(mirror, branch, row, head, candidates[branch.pk])))
    intents, gathered = intents_of(mirror), []
    left_out = [b for b in branches if b.name not in chosen]
    followed += facts_of_unselected(mirror, left_out, mirror_branches, heads, intents)
    for branch, facts in followed:
        with guard(mirror, f"branch {branch.name}"):
            gathered.append((branch, _with_past(mirror, branch, facts, frozenset(intents[branch.name]))))
    return gathered


def _with_past(mirror: Mirror, branch: SourceBranch, facts: PromotionFacts, intended: frozenset[str]) -> PromotionFacts:
    """What we did with a branch before: asked only where it does not stand as noted."""
    if facts.head not in intended and _is_condemned(mirror, branch, facts):
        facts = replace(facts, condemned=True)
    if facts.head == facts.noted:
        return facts
    former = bool(facts.head) and _was_ours(mirror, branch.name, facts.head)
    if not (facts.noted or facts.stray) and facts.position == UNKNOWN:  # our books know of none
        former = former and not made_since(mirror, branch.name)
        # They may be older than it is: it is deleted only if it is ours, and its certificate is retired when it is.
        former = former or (
            facts.gone and facts.head not in intended and _is_certified(mirror, branch.name, facts.head)
        )
    return replace(facts, intended=intended, former=former)


def _was_ours(mirror: Mirror, branch: str, head: str) -> bool:
    """Whether a branch stood there by our own doing. What it was noted at before it was moved on, by whomever, was ours
    as well, although the move to it may have gone with an older database: unless somebody had put it there."""
    moves = mirror.promotions.filter(branch=branch, is_tag=False)
    if moves.filter(to_commit=head).exclude(why__in=NOT_OUR_DOING).exists():
        return True
    return moves.filter(from_commit=head).exists() and not moves.filter(to_commit=head, why=Why.FOREIGN).exists()


def _facts(
    mirror: Mirror,
    branch: SourceBranch,
    mirror_branch: MirrorBranch | None,
    head: str,
    candidates: list[CandidateCommit],
) -> PromotionFacts:
    known = any(mirror_branch and c.position == mirror_branch.position for c in candidates)
    put = None if known else where_put(mirror_branch)
    return PromotionFacts(
        candidates=[put, *candidates] if put else candidates,
        head=head,
        noted=mirror_branch.head if mirror_branch else "",
        position=mirror_branch.position if mirror_branch else -1,
        stray=bool(mirror_branch and mirror_branch.stray),
        misplaced=bool(mirror_branch and mirror_branch.misplaced),
        gone=branch.gone_at is not None,
        default=branch.name == mirror.source.default_branch,
        anew=put is not None,
    )


def _is_condemned(mirror: Mirror, branch: SourceBranch, facts: PromotionFacts) -> bool:
    """Whether a branch stands at a commit of the source's that is known not to be whole, beyond where it was put. Books
    that were restored know less than the destination: where its certificate tells of the head, that was us."""
    if facts.position == UNKNOWN and facts.noted and not facts.stray:
        return False  # taken over as it stood: adopted, or made again from the destination
    ahead = {c.commit_id for c in facts.candidates if facts.position < c.position}
    put = {c.commit_id for c in facts.candidates if c.position == facts.position}
    if facts.head not in ahead - put:
        return False
    if not mirror.commits.filter(
        commit__sha=facts.head, data__in=[MirrorCommit.Data.WAITING, MirrorCommit.Data.GONE]
    ).exists():
        return False
    return not _is_certified(mirror, branch.name, facts.head)


def _is_certified(mirror: Mirror, branch: str, head: str) -> bool:
    """A damaged certificate proves nothing. What else goes wrong is raised: it may be there and right."""
    try:
        proof = read_certificate(mirror.region, mirror.storage_namespace, branch)
    except Invalid as error:
        log.warning("%s: %s", mirror.name, error)
        return False
    return proof is not None and proof.commit == head


def _is_at_rest(branch: SourceBranch, mirror_branch: MirrorBranch | None, heads: dict[str, str]) -> bool:
    """At its newest candidate, in our books and at the destination; or gone at both."""
    if branch.gone_at is not None:
        return branch.name not in heads and mirror_branch is None
    if mirror_branch is None or mirror_branch.misplaced:
        return False
    return mirror_branch.position == branch.position and heads.get(branch.name) == branch.head == mirror_branch.head


def _candidates(
    branches: list[SourceBranch], mirror_branches: dict[str, MirrorBranch]
) -> dict[int, list[CandidateCommit]]:
    candidates: dict[int, list[CandidateCommit]] = defaultdict(list)
    least = {b.pk: max(0, mirror_branches[b.name].position) if b.name in mirror_branches else 0 for b in branches}
    for some in chunks(branches):
        keys = [b.pk for b in some]
        rows = Candidate.objects.filter(branch__in=keys, position__gte=min(least[key] for key in keys))
        for branch, sha, position, forward in rows.order_by("branch_id", "position").values_list(
            "branch_id", "commit__sha", "position", "fast_forward"
        ):
            if position >= least[branch]:
                candidates[branch].append(CandidateCommit(sha, position, forward))
    return candidates


def promotable(mirror: Mirror, commits: Iterable[str]) -> set[str]:
    """Those of some commits that a branch or tag may be moved to."""
    shas = mirror.commits.promotable().values_list("commit__sha", flat=True)
    return {sha for some in chunks(sorted(set(commits))) for sha in shas.filter(commit__sha__in=some)}
