"""Promotion: the newest promotable candidate of each branch becomes its head at the destination.

Publish last: everything is there and checked before the one call that moves the branch; then the branch is read back.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction

from core.errors import Conflict, Denied, Fenced, LakeMirrorError, NotFound
from core.ports import LakeFS
from core.promotion import (
    UNKNOWN,
    Action,
    BranchFacts,
    CandidateCommit,
    Decision,
    Why,
    choose_promotion,
    moved_by_others,
    superseded,
)
from lakemirror_site import wiring
from mirrors import clock, duties
from mirrors.breaches import note_breaches
from mirrors.duties import Lease, Outcome
from mirrors.inferring import inferred_candidates
from mirrors.loops.manage import fence
from mirrors.loops.sense import list_heads
from mirrors.loops.tags import follow_tags
from mirrors.loops.uncommitted import branches_to_look_at, look_for_uncommitted
from mirrors.loops.unselected import facts_of_unselected
from mirrors.measuring import note_measures
from mirrors.models import Candidate, Mirror, MirrorBranch, Promotion, SourceBranch
from mirrors.standing import first_pending, places_of

log = logging.getLogger("lakemirror.promote")


def promote(lease: Lease) -> Outcome:
    """One round over all branches of one mirror."""
    mirror = duties.subject_mirror(lease)
    _note_standing(mirror, lease)
    if mirror.state != Mirror.State.ACTIVE or mirror.paused or mirror.source.frozen_reason:
        return Outcome("nothing moves while the mirror is paused, stopped or frozen")
    lakefs = wiring.lakefs(mirror.region)
    heads = list_heads(lakefs, mirror.name, lease)
    if _is_going(mirror, heads):
        raise LakeMirrorRetry(f"{mirror.region} gave no branch {mirror.source.default_branch}: not taken for a look")
    moved, failed = 0, _Failures()
    for branch, facts in gather_facts(mirror, heads):
        lease.beat()
        with failed.of(mirror, branch.name):
            moved += _settle_branch(mirror, branch, facts, lakefs, lease)
        if facts.dropped:
            heads.pop(branch.name, None)  # no stray, although it was there when the round began
    _note_strays(mirror, heads, lease)
    moved += follow_tags(mirror, lakefs, lease, failed.of)
    for row in branches_to_look_at(mirror):
        lease.beat()
        with failed.of(mirror, row.name):
            look_for_uncommitted(mirror, row, lakefs, lease)
    if moved:
        _note_standing(mirror, lease)
        duties.wake("manage", mirror.pk)  # which writes the certificates
    Mirror.objects.filter(pk=mirror.pk).update(destination_looked_at=clock.now())
    failed.tell()
    return Outcome(f"{moved} branches moved, {len(heads)} at the destination")


def _note_standing(mirror: Mirror, lease: Lease) -> None:
    """How late and how far behind it is: before anything moves, and after."""
    places = places_of(mirror)
    pending = first_pending(places)
    note_breaches(mirror, places, pending, lease)
    note_measures(mirror, list(pending.values()), lease)


class LakeMirrorRetry(LakeMirrorError):
    """Some branches could not be settled this time; the others were."""

    retryable = True


class _Failures:
    """What went wrong with single branches: it delays no other one."""

    def __init__(self) -> None:
        self.first = ""

    @contextmanager
    def of(self, mirror: Mirror, branch: str) -> Iterator[None]:
        """Keep what goes wrong with one branch for later; a lost lease ends the round."""
        try:
            yield
        except Fenced:
            raise
        except LakeMirrorError as error:
            log.warning("%s: branch %s: %s", mirror.name, branch, error)
            self.first = self.first or f"branch {branch}: {error}"

    def tell(self) -> None:
        """Raise LakeMirrorRetry if anything failed."""
        if self.first:
            raise LakeMirrorRetry(self.first)


# Facts


def _is_going(mirror: Mirror, heads: dict[str, str]) -> bool:
    """lakeFS never deletes a default branch: without ours, its server is just losing the whole repository."""
    default = mirror.source.default_branch
    return default not in heads and mirror.branches.filter(name=default, stray=False).exists()


def gather_facts(mirror: Mirror, heads: dict[str, str]) -> list[tuple[SourceBranch, BranchFacts]]:
    """What `choose_promotion` needs, for branches that are not at rest. Few queries, however many branches."""
    ours, chosen = {b.name: b for b in mirror.branches.all()}, mirror.selection
    branches = list(mirror.source.branches.all())
    stirring = [b for b in branches if b.name in chosen and not _is_at_rest(b, ours.get(b.name), heads)]
    candidates = _candidates(stirring, ours)
    for default in (b for b in stirring if b.name == mirror.source.default_branch and b.gone_at is None):
        inferred = inferred_candidates(mirror, ours.get(default.name), heads.get(default.name, ""))
        candidates[default.pk] = inferred + candidates[default.pk]
    followed = [
        (branch, _facts(mirror, branch, ours.get(branch.name), heads.get(branch.name, ""), candidates[branch.pk]))
        for branch in stirring
    ]
    return followed + facts_of_unselected([b for b in branches if b.name not in chosen], ours, heads)


def _facts(
    mirror: Mirror, branch: SourceBranch, ours: MirrorBranch | None, head: str, candidates: list[CandidateCommit]
) -> BranchFacts:
    return BranchFacts(
        candidates=candidates,
        head=head,
        noted=ours.head if ours else "",
        position=ours.position if ours else -1,
        stray=bool(ours and ours.stray),
        gone=branch.gone_at is not None,
        default=branch.name == mirror.source.default_branch,
    )


def _is_at_rest(branch: SourceBranch, ours: MirrorBranch | None, heads: dict[str, str]) -> bool:
    """At its newest candidate, in our books and at the destination; or gone at both."""
    if branch.gone_at is not None:
        return branch.name not in heads and ours is None
    return ours is not None and ours.position == branch.position and heads.get(branch.name) == branch.head == ours.head


def _candidates(branches: list[SourceBranch], ours: dict[str, MirrorBranch]) -> dict[int, list[CandidateCommit]]:
    found: dict[int, list[CandidateCommit]] = defaultdict(list)
    least = {b.pk: max(0, ours[b.name].position) if b.name in ours else 0 for b in branches}
    for start in range(0, len(branches), 500):
        keys = [b.pk for b in branches[start : start + 500]]
        rows = Candidate.objects.filter(branch__in=keys, position__gte=min(least[key] for key in keys))
        for branch, sha, position, forward in rows.order_by("branch_id", "position").values_list(
            "branch_id", "commit__sha", "position", "fast_forward"
        ):
            if position >= least[branch]:
                found[branch].append(CandidateCommit(sha, position, forward))
    return found


def _promotable(mirror: Mirror, facts: BranchFacts) -> set[str]:
    shas = [c.commit_id for c in facts.candidates]
    found: set[str] = set()
    for start in range(0, len(shas), 500):
        rows = mirror.commits.promotable().filter(commit__sha__in=shas[start : start + 500])
        found.update(rows.values_list("commit__sha", flat=True))
    return found


# Decision, act, read back


def _settle_branch(mirror: Mirror, branch: SourceBranch, facts: BranchFacts, lakefs: LakeFS, lease: Lease) -> int:
    promotable = _promotable(mirror, facts).__contains__
    if moved_by_others(facts, promotable):
        _note_foreign_move(mirror, branch.name, facts.noted, facts.head, lease)
    decision = choose_promotion(facts, promotable)
    if decision.action is Action.NOTHING:
        _remember_position(mirror, branch, facts, decision, lease)
        return 0
    if _was_reselected(mirror):
        return 0  # the next round is due at once, and knows better
    fence(mirror, lakefs, lease)
    refused = _act(mirror, branch, decision, lakefs)
    head = read_back(lakefs, mirror, branch.name)
    if head != decision.commit_id:
        told = f"{branch.name} reads {head[:8] or 'nothing'} after the call to "
        told += f"move it to {decision.commit_id[:8]}" if decision.commit_id else "delete it"
        raise LakeMirrorRetry(f"{told}: {refused}" if refused else told)
    _record(mirror, branch, facts, decision, lease)
    return 1


def _was_reselected(mirror: Mirror) -> bool:
    """Whether somebody changed which branches are mirrored since this round began."""
    return Mirror.objects.values_list("selected", flat=True).get(pk=mirror.pk) != mirror.selected


def _act(mirror: Mirror, branch: SourceBranch, decision: Decision, lakefs: LakeFS) -> LakeMirrorError | None:
    """One forced call; gives what it answered if that was an error. The branch is read back all the same: the move
    may have taken place."""
    try:
        if decision.action is Action.CREATE:
            lakefs.create_branch(mirror.name, branch.name, decision.commit_id, hidden=bool(branch.hidden))
        elif decision.action is Action.RESET:
            lakefs.hard_reset_branch(mirror.name, branch.name, decision.commit_id)
        else:
            lakefs.delete_branch(mirror.name, branch.name)
    except LakeMirrorError as error:
        if not (error.retryable or isinstance(error, Conflict | NotFound | Denied)):
            raise
        log.warning("%s: reading back after: %s", mirror.name, error)
        return error
    return None


def read_back(lakefs: LakeFS, mirror: Mirror, branch: str) -> str:
    """What the destination says that the branch points at; "" when there is none."""
    try:
        return lakefs.get_branch(mirror.name, branch).commit_id
    except NotFound:
        return ""


# The books


def _remember_position(
    mirror: Mirror, branch: SourceBranch, facts: BranchFacts, decision: Decision, lease: Lease
) -> None:
    """The destination is where it should be although our books said otherwise (a crash after the move)."""
    if decision.position != UNKNOWN and facts.head and facts.head == decision.commit_id:
        if facts.stray or facts.position != decision.position or facts.noted != facts.head:
            _record(mirror, branch, facts, decision, lease, moved=False)
    elif (facts.gone or facts.dropped) and not facts.head:
        mirror.branches.filter(name=branch.name).delete()


def _record(
    mirror: Mirror, branch: SourceBranch, facts: BranchFacts, decision: Decision, lease: Lease, *, moved: bool = True
) -> None:
    now = clock.now()
    with transaction.atomic():
        lease.hold()
        Promotion.objects.create(
            mirror=mirror,
            branch=branch.name,
            from_commit=facts.head if moved else "",
            to_commit=decision.commit_id,
            why=decision.why,
            at=now,
        )
        if decision.action is Action.DELETE:
            mirror.branches.filter(name=branch.name).delete()
            if facts.dropped:
                Mirror.objects.filter(pk=mirror.pk).update(reselected=True)
                duties.wake("validate", mirror.pk)
            return
        _note_head(mirror, branch.name, decision, now)
        _note_superseded(mirror, facts, decision, now)
    log.info("%s: %s is now at %s (%s)", mirror.name, branch.name, decision.commit_id[:8] or "nothing", decision.why)


def _note_head(mirror: Mirror, branch: str, decision: Decision, now: datetime) -> None:
    """What was written there by force may still be there: the next looks go to this branch."""
    fresh = {"head": decision.commit_id, "position": decision.position, "advanced_at": now, "stray": False}
    MirrorBranch.objects.update_or_create(mirror=mirror, name=branch, defaults=fresh | {"looked_at": None})
    mirror.commits.filter(commit__sha=decision.commit_id, promoted_at=None).update(promoted_at=now)


def _note_superseded(mirror: Mirror, facts: BranchFacts, decision: Decision, now: datetime) -> None:
    passed = superseded(facts.candidates, after=facts.position, before=decision.position)
    for start in range(0, len(passed), 500):
        rows = mirror.commits.filter(commit__sha__in=passed[start : start + 500], promoted_at=None, superseded_at=None)
        rows.update(superseded_at=now)


def _note_strays(mirror: Mirror, heads: dict[str, str], lease: Lease) -> None:
    """Branches at the destination that the source never had, or not for this mirror: shown, never touched."""
    if not mirror.source.branches.filter(position__gte=0).exists():
        return  # the source was not looked at since its rows were made
    noted = dict(mirror.branches.filter(stray=True).values_list("name", "head"))
    mirror.branches.filter(stray=True, name__in=noted.keys() - heads.keys()).delete()
    chosen = mirror.selection
    ours = set(mirror.branches.filter(stray=False).values_list("name", flat=True))
    theirs = mirror.source.branches.values_list("name", flat=True)
    for name in heads.keys() - {name for name in theirs if name in chosen or name in ours}:
        if noted.get(name) != heads[name]:
            _note_foreign_move(mirror, name, noted.get(name, ""), heads[name], lease, stray=True)


def _note_foreign_move(
    mirror: Mirror, branch: str, noted: str, head: str, lease: Lease, *, stray: bool = False
) -> None:
    """Somebody made, moved or deleted a branch of the mirror: that goes into its history, whatever follows."""
    with transaction.atomic():
        lease.hold()
        Promotion.objects.create(
            mirror=mirror, branch=branch, from_commit=noted, to_commit=head, why=Why.FOREIGN, at=clock.now()
        )
        known = {"head": head, "stray": True} if stray else {"head": head}
        MirrorBranch.objects.update_or_create(
            mirror=mirror, name=branch, defaults=known, create_defaults={"head": head, "stray": True}
        )
    log.error("%s: somebody moved %s from %s to %s", mirror.name, branch, noted[:8] or "nothing", head[:8] or "nothing")
