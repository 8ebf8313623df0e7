"""Promotion: the newest promotable candidate of each branch becomes its head at the destination.

Publish last: everything is there and checked before the one call that moves the branch; then the branch is read back.
"""

from __future__ import annotations

import logging

from core.errors import Conflict, Denied, Fenced, LakeMirrorError, NotFound
from core.mirroring.judgement import Obstacle
from core.mirroring.promotion import Action, Decision, PromotionFacts, Whose, choose_promotion, whose_move
from core.ports import LakeFS
from db import clock
from deployment.wiring import clients
from jobs import duties
from jobs.lease import DutyOutcome, Lease
from mirrors.engine.certificates import retire_certificate
from mirrors.engine.manage import fence_call, require_pinned
from mirrors.engine.promote import books
from mirrors.engine.promote.branch_facts import gather_facts, promotable
from mirrors.engine.promote.guard import Failures, LakeMirrorRetry
from mirrors.engine.promote.record_check import doubt_records, prove_records
from mirrors.engine.promote.shown import Shown
from mirrors.engine.promote.tags import follow_tags
from mirrors.engine.promote.uncommitted import branches_to_look_at, look_for_uncommitted
from mirrors.models import Mirror, MirrorDuty, SourceBranch
from mirrors.queries.branch_positions import first_pending, positions_of
from mirrors.transitions import duties as mirror_duties
from mirrors.transitions.measures import note_measures
from mirrors.transitions.move_intents import forget_old_intents, intend, intents_of
from mirrors.transitions.rpo_breaches import note_breaches

log = logging.getLogger("lakemirror.promote")

FOR_GOOD = 6
"""After so many looks in a row, the last ones half a minute apart, a repository without its default branch is no ghost
of one that was deleted, but a destination that was restored to before that branch was made: it is made again."""
_OF_THE_MIRROR = {Obstacle.STOPPED, Obstacle.PAUSED, Obstacle.FROZEN, Obstacle.CHANGED, Obstacle.REPLACED}
_UNEXPLAINED = (Whose.BACK, Whose.VANISHED, Whose.OTHERS)


def promote(lease: Lease) -> DutyOutcome:
    """One round over all branches of one mirror."""
    mirror = mirror_duties.subject_mirror(lease)
    _note_standing(mirror, lease)
    if mirror.state != Mirror.State.ACTIVE or mirror.paused or mirror.source.frozen_reason:
        return DutyOutcome("nothing moves while the mirror is paused, stopped or frozen")
    lakefs = clients.lakefs(mirror.region)
    failed = Failures()
    shown = Shown(mirror, lakefs, lease, failed)
    moved, heads = 0, dict(shown.heads)
    if _is_going(mirror, heads) and lease.duty.failures < FOR_GOOD:
        raise LakeMirrorRetry(f"{mirror.region} gave no branch {mirror.source.default_branch}: not taken for a look")
    gathered, intents = gather_facts(mirror, heads, failed.of), intents_of(mirror)
    if mirror.proving_records or any(whose_move(facts) in _UNEXPLAINED for _, facts in gathered):
        doubt_records(mirror, lease)  # before anything moves: the destination may be younger than our books
    for branch, facts in gathered:
        lease.renew()
        with failed.of(mirror, branch.name):
            facts = books.note_move(mirror, branch, facts, intents[branch.name], lease)
            moved += _settle_branch(mirror, branch, facts, lakefs, lease, shown=shown)
        if facts.dropped:
            heads.pop(branch.name, None)  # no stray, although it was there when the round began
    books.note_strays(mirror, heads, lease)
    moved += follow_tags(mirror, lakefs, lease, failed.of, shown)
    for row in branches_to_look_at(mirror):
        lease.renew()
        with failed.of(mirror, row.name):
            look_for_uncommitted(mirror, row, lakefs, lease)
    if moved:
        _note_standing(mirror, lease)
        duties.wake(MirrorDuty.MANAGE, mirror.pk)  # which writes the certificates
    Mirror.objects.filter(pk=mirror.pk).update(destination_looked_at=clock.now())
    forget_old_intents(mirror)
    failed.tell()
    return DutyOutcome(f"{moved} branches moved, {len(heads)} at the destination")


def _note_standing(mirror: Mirror, lease: Lease) -> None:
    """How late and how far behind it is: before anything moves, and after."""
    places = positions_of(mirror)
    pending = first_pending(places)
    note_breaches(mirror, places, pending, lease)
    note_measures(mirror, list(pending.values()), lease)


def _is_going(mirror: Mirror, heads: dict[str, str]) -> bool:
    """lakeFS never deletes a default branch: without ours, its server is just losing the whole repository."""
    default = mirror.source.default_branch
    return default not in heads and mirror.branches.filter(name=default, stray=False).exists()


# --- decision, act, read back ---------------------------------------------------------------------------------------


def _settle_branch(
    mirror: Mirror,
    branch: SourceBranch,
    facts: PromotionFacts,
    lakefs: LakeFS,
    lease: Lease,
    *,
    shown: Shown,
) -> int:
    decision = choose_promotion(facts, promotable(mirror, facts).__contains__)
    if decision.action is Action.NOTHING:
        books.remember_position(mirror, branch, facts, decision, lease)
        return 0
    if _was_reselected(mirror):
        return 0  # the next round is due at once, and knows better
    require_pinned(mirror, lakefs)
    if decision.commit_id and not prove_records(mirror, lakefs, decision.commit_id, shown.history(), lease):
        return 0
    if decision.action is Action.DELETE:
        retire_certificate(mirror, branch.name, lease)
    if not _is_intended(mirror, branch, facts, decision, lease):
        return 0
    fence_call(lease)
    refused = _act(mirror, branch, decision, lakefs)
    if isinstance(refused, NotFound) and decision.commit_id:
        doubt_records(mirror, lease)  # a commit that was accepted there is there no more
    head = read_back(lakefs, mirror, branch.name)
    if head != decision.commit_id:
        message = f"{branch.name} reads {head[:8] or 'nothing'} after the call to "
        message += f"move it to {decision.commit_id[:8]}" if decision.commit_id else "delete it"
        raise LakeMirrorRetry(f"{message}: {refused}" if refused else message)
    books.record(mirror, branch, facts, decision, lease, placed=True)
    return 1


def _is_intended(mirror: Mirror, branch: SourceBranch, facts: PromotionFacts, decision: Decision, lease: Lease) -> bool:
    """Last thing before the call: the move is judged by the facts as they are now, and written down."""
    judgement = intend(
        mirror,
        lease,
        name=branch.name,
        from_commit=facts.head,
        to_commit=decision.commit_id,
        why=decision.why,
        position=decision.position,
    )
    if judgement.allowed:
        return True
    if judgement.obstacle in _OF_THE_MIRROR:
        raise Fenced(f"{branch.name} stays where it is: {judgement.detail}")
    log.warning("%s: %s stays where it is: %s", mirror.name, branch.name, judgement.detail)
    return False


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
