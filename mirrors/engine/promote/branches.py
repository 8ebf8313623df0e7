"""Promotion: the newest promotable candidate of each branch becomes its head at the destination.

Publish last: everything is there and checked before the one call that moves the branch; then the branch is read back.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from core.errors import Conflict, Denied, Fenced, LakeMirrorError, NotFound
from core.mirroring.judgement import Obstacle
from core.mirroring.promotion import (
    MOVED_BY_OTHERS,
    UNKNOWN,
    Action,
    BranchFacts,
    CandidateCommit,
    Decision,
    OwnMove,
    Whose,
    Why,
    choose_promotion,
    is_news,
    own_move,
    superseded,
    whose_move,
)
from core.ports import LakeFS
from db import clock
from deployment import wiring
from jobs import duties
from jobs.duties import Lease, Outcome
from mirrors.engine.certificates import retire_certificate
from mirrors.engine.manage import fence_call, require_pinned
from mirrors.engine.promote.record_check import doubt_records, prove_records
from mirrors.engine.promote.tags import follow_tags
from mirrors.engine.promote.uncommitted import branches_to_look_at, look_for_uncommitted
from mirrors.engine.promote.unselected import facts_of_unselected
from mirrors.engine.sense.branches import list_heads
from mirrors.engine.sense.inferred import inferred_candidates
from mirrors.models import Candidate, Mirror, MirrorBranch, MoveIntent, Promotion, SourceBranch
from mirrors.queries.branch_positions import first_pending, places_of
from mirrors.queries.certificates import read_certificate
from mirrors.transitions import duties as mirror_duties
from mirrors.transitions.measures import note_measures
from mirrors.transitions.move_intents import forget_old_intents, intend, intents_of
from mirrors.transitions.proven_heads import prove_heads
from mirrors.transitions.rpo_breaches import note_breaches
from mirrors.transitions.validity import hold

log = logging.getLogger("lakemirror.promote")

FOR_GOOD = 6
"""After so many looks in a row, the last ones half a minute apart, a repository without its default branch is no ghost
of one that was deleted, but a destination that was restored to before that branch was made: it is made again."""
_OF_THE_MIRROR = {Obstacle.STOPPED, Obstacle.PAUSED, Obstacle.FROZEN, Obstacle.CHANGED, Obstacle.REPLACED}
_NOT_OUR_DOING = [*MOVED_BY_OTHERS, Why.WRITTEN]
_UNEXPLAINED = (Whose.BACK, Whose.VANISHED, Whose.OTHERS)


def promote(lease: Lease) -> Outcome:
    """One round over all branches of one mirror."""
    mirror = mirror_duties.subject_mirror(lease)
    _note_standing(mirror, lease)
    if mirror.state != Mirror.State.ACTIVE or mirror.paused or mirror.source.frozen_reason:
        return Outcome("nothing moves while the mirror is paused, stopped or frozen")
    lakefs = wiring.lakefs(mirror.region)
    heads = list_heads(lakefs, mirror.name, lease)
    if _is_going(mirror, heads) and lease.duty.failures < FOR_GOOD:
        raise LakeMirrorRetry(f"{mirror.region} gave no branch {mirror.source.default_branch}: not taken for a look")
    moved, failed = 0, _Failures()
    gathered, intents = gather_facts(mirror, heads), intents_of(mirror)
    if any(whose_move(facts) in _UNEXPLAINED for _, facts in gathered):
        doubt_records(mirror, lease)  # before anything moves: the destination may be younger than our books
    for branch, facts in gathered:
        lease.beat()
        with failed.of(mirror, branch.name):
            facts = _note_move(mirror, branch, facts, intents[branch.name], lease)
            moved += _settle_branch(mirror, branch, facts, lakefs, lease, shown=heads.values())
        if facts.dropped:
            heads.pop(branch.name, None)  # no stray, although it was there when the round began
    _note_strays(mirror, heads, lease)
    moved += follow_tags(mirror, lakefs, lease, failed.of, heads.values())
    for row in branches_to_look_at(mirror):
        lease.beat()
        with failed.of(mirror, row.name):
            look_for_uncommitted(mirror, row, lakefs, lease)
    if moved:
        _note_standing(mirror, lease)
        duties.wake("manage", mirror.pk)  # which writes the certificates
    Mirror.objects.filter(pk=mirror.pk).update(destination_looked_at=clock.now())
    forget_old_intents(mirror)
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
    followed += facts_of_unselected([b for b in branches if b.name not in chosen], ours, heads)
    intents = intents_of(mirror)
    return [(branch, _with_past(mirror, branch, facts, frozenset(intents[branch.name]))) for branch, facts in followed]


def _with_past(mirror: Mirror, branch: SourceBranch, facts: BranchFacts, intended: frozenset[str]) -> BranchFacts:
    """What we did with a branch before: asked only where it does not stand as noted."""
    if facts.head not in intended and _is_condemned(mirror, branch, facts):
        facts = replace(facts, condemned=True)
    if facts.head == facts.noted:
        return facts
    before = mirror.promotions.filter(branch=branch.name, is_tag=False, to_commit=facts.head)
    former = bool(facts.head) and before.exclude(why__in=_NOT_OUR_DOING).exists()
    return replace(facts, intended=intended, former=former)


def _facts(
    mirror: Mirror, branch: SourceBranch, ours: MirrorBranch | None, head: str, candidates: list[CandidateCommit]
) -> BranchFacts:
    return BranchFacts(
        candidates=candidates,
        head=head,
        noted=ours.head if ours else "",
        position=ours.position if ours else -1,
        stray=bool(ours and ours.stray),
        misplaced=bool(ours and ours.misplaced),
        gone=branch.gone_at is not None,
        default=branch.name == mirror.source.default_branch,
    )


def _is_condemned(mirror: Mirror, branch: SourceBranch, facts: BranchFacts) -> bool:
    """Whether a branch stands at a commit of the source's that is known not to be whole, beyond where it was put. Books
    that were restored know less than the destination: where its certificate tells of the head, that was us."""
    if facts.position == UNKNOWN and facts.noted and not facts.stray:
        return False  # taken over as it stood: adopted, or made again from the destination
    ahead = {c.commit_id for c in facts.candidates if facts.position < c.position}
    put = {c.commit_id for c in facts.candidates if c.position == facts.position}
    if facts.head not in ahead - put:
        return False
    if not mirror.commits.filter(commit__sha=facts.head, data__in=["waiting", "gone"]).exists():
        return False
    proof = read_certificate(mirror.region, mirror.storage_namespace, branch.name)
    return proof is None or proof.commit != facts.head


def _is_at_rest(branch: SourceBranch, ours: MirrorBranch | None, heads: dict[str, str]) -> bool:
    """At its newest candidate, in our books and at the destination; or gone at both."""
    if branch.gone_at is not None:
        return branch.name not in heads and ours is None
    if ours is None or ours.misplaced:
        return False
    return ours.position == branch.position and heads.get(branch.name) == branch.head == ours.head


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


def _settle_branch(
    mirror: Mirror,
    branch: SourceBranch,
    facts: BranchFacts,
    lakefs: LakeFS,
    lease: Lease,
    *,
    shown: Collection[str],
) -> int:
    decision = choose_promotion(facts, _promotable(mirror, facts).__contains__)
    if decision.action is Action.NOTHING:
        _remember_position(mirror, branch, facts, decision, lease)
        return 0
    if _was_reselected(mirror):
        return 0  # the next round is due at once, and knows better
    require_pinned(mirror, lakefs)
    if decision.commit_id and not prove_records(mirror, lakefs, decision.commit_id, shown, lease):
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
        told = f"{branch.name} reads {head[:8] or 'nothing'} after the call to "
        told += f"move it to {decision.commit_id[:8]}" if decision.commit_id else "delete it"
        raise LakeMirrorRetry(f"{told}: {refused}" if refused else told)
    _record(mirror, branch, facts, decision, lease)
    return 1


def _is_intended(mirror: Mirror, branch: SourceBranch, facts: BranchFacts, decision: Decision, lease: Lease) -> bool:
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


# The books


def _note_move(
    mirror: Mirror, branch: SourceBranch, facts: BranchFacts, intents: Mapping[str, MoveIntent], lease: Lease
) -> BranchFacts:
    """Write down who brought the branch where it is, if that is not as noted; gives the facts as they are then."""
    whose = whose_move(facts)
    if whose is Whose.NOTED:
        return facts
    if whose is Whose.OURS:
        return _note_own_move(mirror, branch, facts, intents[facts.head], lease)
    if whose is Whose.AHEAD:
        _note_foreign_move(mirror, branch.name, facts.noted, facts.head, lease, why=Why.FOUND)
        return facts
    why = {Whose.BACK: Why.BACK, Whose.VANISHED: Why.VANISHED}.get(whose, Why.FOREIGN)
    _note_foreign_move(mirror, branch.name, facts.noted, facts.head, lease, why=why)
    return facts


def _note_own_move(
    mirror: Mirror, branch: SourceBranch, facts: BranchFacts, intent: MoveIntent, lease: Lease
) -> BranchFacts:
    """A worker ended between its call and its note, or a call that was given up was carried out after all."""
    became = own_move(facts, intent.position)
    if became is OwnMove.DELETED:
        _record(mirror, branch, facts, Decision(Action.DELETE, Why(intent.why)), lease)
        return replace(facts, noted="")
    if became is OwnMove.LATE:
        _note_foreign_move(mirror, branch.name, facts.noted, facts.head, lease, why=Why.BACK)
        return facts
    decision = Decision(Action.RESET, Why(intent.why), intent.to_commit, intent.position)
    _record(mirror, branch, replace(facts, head=intent.from_commit), decision, lease)
    return replace(facts, noted=facts.head, position=intent.position, stray=False)


def _remember_position(
    mirror: Mirror, branch: SourceBranch, facts: BranchFacts, decision: Decision, lease: Lease
) -> None:
    """The destination is where it should be although our books said otherwise."""
    if is_news(facts, decision, _promotable(mirror, facts).__contains__):
        _record(mirror, branch, facts, decision, lease, moved=False)
    elif (facts.gone or facts.dropped) and not facts.head:
        mirror.branches.filter(name=branch.name).delete()


def _record(
    mirror: Mirror, branch: SourceBranch, facts: BranchFacts, decision: Decision, lease: Lease, *, moved: bool = True
) -> None:
    now = clock.now()
    with transaction.atomic():
        hold(mirror, lease, settings=False)
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
            mirror.intents.filter(name=branch.name, is_tag=False).delete()
            if facts.dropped:
                Mirror.objects.filter(pk=mirror.pk).update(reselected=True)
                duties.wake("validate", mirror.pk)
            return
        _note_head(mirror, branch.name, decision, now)
        _note_superseded(mirror, facts, decision, now)
    log.info("%s: %s is now at %s (%s)", mirror.name, branch.name, decision.commit_id[:8] or "nothing", decision.why)


def _note_head(mirror: Mirror, branch: str, decision: Decision, now: datetime) -> None:
    """What was written there by force may still be there: the next looks go to this branch."""
    fresh = {"head": decision.commit_id, "position": decision.position, "advanced_at": now}
    fresh |= {"stray": False, "misplaced": False, "proven": False, "looked_at": None}
    MirrorBranch.objects.update_or_create(mirror=mirror, name=branch, defaults=fresh)
    mirror.commits.filter(commit__sha=decision.commit_id, promoted_at=None).update(promoted_at=now)
    prove_heads(mirror)


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
    mirror: Mirror,
    branch: str,
    noted: str,
    head: str,
    lease: Lease,
    *,
    stray: bool = False,
    why: Why = Why.FOREIGN,
) -> None:
    """A branch is not where this mirror put it: that goes into its history, whatever follows."""
    with transaction.atomic():
        hold(mirror, lease, settings=False)
        Promotion.objects.create(
            mirror=mirror, branch=branch, from_commit=noted, to_commit=head, why=why, at=clock.now()
        )
        known = {"head": head, "proven": False, "misplaced": why is not Why.FOUND}
        MirrorBranch.objects.update_or_create(
            mirror=mirror,
            name=branch,
            defaults=known | ({"stray": True} if stray else {}),
            create_defaults=known | {"stray": True},
        )
        if why is Why.FOUND:
            prove_heads(mirror)
    told = _TOLD.get(why, "somebody moved %s from %s to %s")
    log.error(f"%s: {told}", mirror.name, branch, noted[:8] or "nothing", head[:8] or "nothing")


_TOLD = {
    Why.FOUND: "%s was noted at %s and is at %s, where the source had it later: the books have lost that move",
    Why.BACK: "%s is not at %s any more but back at %s: somebody moved it, the destination was "
    "restored, or an earlier call of this mirror was carried out late",
    Why.VANISHED: "%s, which was at %s, is gone (%s): somebody deleted it, or the destination was restored",
}
