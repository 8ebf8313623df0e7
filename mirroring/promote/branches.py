"""Promotion: the newest promotable candidate of each branch becomes its head at the destination."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from core.errors import NotFound, PartialFailure
from core.mirroring.promotion import UNEXPLAINED, Action, Decision, PromotionFacts, choose_promotion, whose_move
from db import clock
from deployment.wiring import clients
from jobs import duties
from jobs.lease import DutyOutcome, Lease
from mirroring.certificates import retire_certificate, retire_if_deleted
from mirroring.promote import move_history
from mirroring.promote.branch_facts import gather_facts, promotable
from mirroring.promote.destination_heads import Shown
from mirroring.promote.move_ref import ForcedCall, Round, settle
from mirroring.promote.older_books import may_be_older, waits_for_the_source
from mirroring.promote.ref_failures import Failures
from mirroring.promote.resend_records import prove_newest
from mirroring.promote.tags import follow_tags
from mirroring.promote.uncommitted import branches_to_look_at, look_for_uncommitted
from mirrors.models import Mirror, MirrorDuty, MoveIntent, SourceBranch
from mirrors.queries.branch_positions import first_pending, positions_of
from mirrors.queries.own_moves import is_news
from mirrors.transitions import duties as mirror_duties
from mirrors.transitions.measures import note_measures
from mirrors.transitions.move_intents import forget_old_intents, intents_of
from mirrors.transitions.rpo_breaches import note_breaches

log = logging.getLogger("lakemirror.promote")

FOR_GOOD = 6
"""After so many looks in a row, the last ones half a minute apart, a repository without its default branch is no ghost
of one that was deleted, but a destination that was restored to before that branch was made: it is made again."""


def promote(lease: Lease) -> DutyOutcome:
    """One round over all branches of one mirror."""
    mirror = mirror_duties.subject_mirror(lease)
    _note_standing(mirror, lease)
    if mirror.state != Mirror.State.ACTIVE or mirror.paused or mirror.source.frozen_reason:
        return DutyOutcome("nothing moves while the mirror is paused, stopped or frozen")
    lakefs = clients.lakefs(mirror.region)
    failed = Failures()
    shown = Shown(mirror, lakefs, lease, failed)
    about, moved, heads = Round(mirror, lakefs, lease, shown), 0, dict(shown.heads)
    if _is_going(mirror, heads) and lease.duty.failures < FOR_GOOD:
        raise PartialFailure(
            f"{mirror.region} returned no branch {mirror.source.default_branch}: this answer is ignored"
        )
    older = may_be_older(mirror)
    gathered, intents = gather_facts(mirror, heads, failed.of), intents_of(mirror)
    gathered = [about_one for about_one in gathered if not waits_for_the_source(*about_one, older=older)]
    moved_by_others = {branch.name for branch, facts in gathered if whose_move(facts) in UNEXPLAINED}
    if mirror.proving_records or is_news(mirror, moved_by_others):
        about.begin()
        prove_newest(mirror, lakefs, lease)  # before anything moves: the destination may be younger than our books
    for branch, facts in gathered:
        lease.renew()
        with failed.of(mirror, f"branch {branch.name}"):
            moved += settle(BranchRef(about, branch, facts, intents[branch.name]), about)
        if facts.dropped:
            heads.pop(branch.name, None)  # no stray, although it was there when the round began
    if not older:
        move_history.note_strays(mirror, heads, lease)
    Mirror.objects.filter(pk=mirror.pk).update(destination_looked_at=clock.now())
    moved += 0 if older else follow_tags(about, failed.of)
    for row in branches_to_look_at(mirror):
        lease.renew()
        with failed.of(mirror, f"branch {row.name}"):
            look_for_uncommitted(mirror, row, lakefs, lease)
    if moved:
        _note_standing(mirror, lease, moved=True)
        duties.wake(MirrorDuty.MANAGE, mirror.pk)  # which writes the certificates
    forget_old_intents(mirror)
    failed.tell()
    return DutyOutcome(f"{moved} branches moved, {len(heads)} at the destination")


def _note_standing(mirror: Mirror, lease: Lease, *, moved: bool = False) -> None:
    """How late and how far behind it is: before anything moves, and after."""
    places = positions_of(mirror)
    pending = first_pending(mirror, places)
    note_breaches(mirror, places, pending, lease)
    note_measures(mirror, list(pending.values()), lease, moved=moved)


def _is_going(mirror: Mirror, heads: dict[str, str]) -> bool:
    """lakeFS never deletes a default branch: without ours, its server is just losing the whole repository."""
    default = mirror.source.default_branch
    return default not in heads and mirror.branches.filter(name=default, stray=False).exists()


# --- one of its branches --------------------------------------------------------------------------------------------


@dataclass(slots=True)
class BranchRef:
    """A branch of the mirror's, with what is known of it; `intents`: where it was lately meant to go, by commit."""

    is_tag: ClassVar[bool] = False

    about: Round
    branch: SourceBranch
    facts: PromotionFacts
    intents: Mapping[str, MoveIntent]

    @property
    def name(self) -> str:
        return self.branch.name

    @property
    def head(self) -> str:
        return self.facts.head

    def note_move(self) -> None:
        self.facts = move_history.note_move(self.about.mirror, self.branch, self.facts, self.intents, self.about.lease)

    def decide(self) -> Decision:
        commits = (candidate.commit_id for candidate in self.facts.candidates)
        return choose_promotion(self.facts, promotable(self.about.mirror, commits).__contains__)

    def note_rest(self, decision: Decision) -> None:
        mirror, lease, gone = self.about.mirror, self.about.lease, self.facts.gone or self.facts.dropped
        if gone and not self.head:  # whoever deleted it
            retire_certificate(mirror, self.name, lease)
        move_history.remember_position(mirror, self.branch, self.facts, decision, lease)
        if gone and not self.head:
            retire_if_deleted(mirror, self.name, lease)

    def prepare(self, decision: Decision) -> None:
        if decision.action is Action.DELETE:
            retire_certificate(self.about.mirror, self.name, self.about.lease)

    def calls(self, decision: Decision) -> Sequence[ForcedCall]:
        lakefs, place, commit = self.about.lakefs, (self.about.mirror.name, self.name), decision.commit_id
        if decision.action is Action.CREATE:
            make = partial(lakefs.create_branch, *place, commit, hidden=bool(self.branch.hidden))
        elif decision.action is Action.RESET:
            make = partial(lakefs.hard_reset_branch, *place, commit)
        else:
            make = partial(lakefs.delete_branch, *place)
        return [ForcedCall(commit, make)]

    def read_back(self) -> str:
        try:
            return self.about.lakefs.get_branch(self.about.mirror.name, self.name).commit_id
        except NotFound:
            return ""

    def note_elsewhere(self, head: str) -> None:
        """The next round says who brought it there."""

    def record(self, decision: Decision) -> None:
        mirror, lease = self.about.mirror, self.about.lease
        move_history.record(mirror, self.branch, self.facts, decision, lease, placed=True)
        if decision.action is Action.DELETE:
            retire_if_deleted(mirror, self.name, lease)
