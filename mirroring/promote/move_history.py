"""What is written down of the moves of a mirror's branches, our own and those of others, once they were made."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from core.mirroring.promotion import (
    UNEXPLAINED,
    Action,
    Decision,
    OwnMove,
    PromotionFacts,
    Whose,
    Why,
    is_news,
    own_move,
    superseded,
    whose_move,
    without_branch,
)
from db import clock
from db.chunks import chunks
from jobs import duties
from jobs.lease import Lease
from mirroring.promote.branch_facts import promotable
from mirrors.models import Mirror, MirrorBranch, MirrorDuty, MoveIntent, Promotion, SourceBranch
from mirrors.transitions.proven_heads import prove_heads
from mirrors.transitions.validity import locked_mirror

log = logging.getLogger("lakemirror.promote")

_SAID = {Whose.AHEAD: Why.FOUND} | UNEXPLAINED


def note_move(
    mirror: Mirror, branch: SourceBranch, facts: PromotionFacts, intents: Mapping[str, MoveIntent], lease: Lease
) -> PromotionFacts:
    """Write down who brought the branch where it is, if that is not as noted; gives the facts as they are then."""
    whose = whose_move(facts)
    if whose is Whose.NOTED:
        return facts
    if whose is Whose.OURS:
        return _note_own_move(mirror, branch, facts, intents[facts.head], lease)
    _note_foreign_move(mirror, branch.name, facts.noted, facts.head, lease, why=_SAID[whose])
    return facts


def _note_own_move(
    mirror: Mirror, branch: SourceBranch, facts: PromotionFacts, intent: MoveIntent, lease: Lease
) -> PromotionFacts:
    """A worker ended between its call and its note, or a call that was given up was carried out after all."""
    became = own_move(facts, intent.position)
    if became is OwnMove.DELETED:
        before = replace(facts, head=intent.from_commit)
        record(mirror, branch, before, Decision(Action.DELETE, Why(intent.why)), lease)
        return without_branch(facts)
    if became is OwnMove.LATE:
        _note_foreign_move(mirror, branch.name, facts.noted, facts.head, lease, why=Why.BACK)
        return facts
    decision = Decision(Action.RESET, Why(intent.why), intent.to_commit, intent.position)
    record(mirror, branch, replace(facts, head=intent.from_commit), decision, lease)
    return replace(facts, noted=facts.head, position=intent.position, stray=False)


def remember_position(
    mirror: Mirror, branch: SourceBranch, facts: PromotionFacts, decision: Decision, lease: Lease
) -> None:
    """The destination is where it should be although our books said otherwise."""
    commits = (candidate.commit_id for candidate in facts.candidates)
    if is_news(facts, decision, promotable(mirror, commits).__contains__):
        record(mirror, branch, facts, decision, lease, moved=False)
    elif (facts.gone or facts.dropped) and not facts.head:
        mirror.branches.filter(name=branch.name).delete()


def record(
    mirror: Mirror,
    branch: SourceBranch,
    facts: PromotionFacts,
    decision: Decision,
    lease: Lease,
    *,
    moved: bool = True,
    placed: bool = False,
) -> None:
    """A move goes into the history and the row of its branch. `moved`: false where only the books were wrong. `placed`:
    it was carried out just now, after a proof of the records."""
    now = clock.now()
    with locked_mirror(mirror, lease, settings=False):
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
                duties.wake(MirrorDuty.VALIDATE, mirror.pk)
            return
        _note_head(mirror, branch.name, decision, now, placed=placed, dropped=facts.dropped)
        _note_superseded(mirror, facts, decision, now)
    log.info("%s: %s is now at %s (%s)", mirror.name, branch.name, decision.commit_id[:8] or "nothing", decision.why)


def _note_head(mirror: Mirror, branch: str, decision: Decision, now: datetime, *, placed: bool, dropped: bool) -> None:
    """What was written there by force may still be there: the next looks go to this branch."""
    fresh = {"head": decision.commit_id, "position": decision.position, "advanced_at": now}
    fresh |= {"stray": False, "misplaced": False, "proven": False, "looked_at": None}
    fresh |= {"placed": decision.commit_id if placed else "", "delete_asked": dropped}
    fresh |= {"certified": ""} if placed else {}  # books that are older than a retirement say that it has one
    MirrorBranch.objects.update_or_create(mirror=mirror, name=branch, defaults=fresh)
    mirror.commits.filter(commit__sha=decision.commit_id, promoted_at=None).update(promoted_at=now)
    prove_heads(mirror)


def _note_superseded(mirror: Mirror, facts: PromotionFacts, decision: Decision, now: datetime) -> None:
    passed = superseded(facts.candidates, after=facts.position, before=decision.position)
    for some in chunks(passed):
        rows = mirror.commits.filter(commit__sha__in=some, promoted_at=None, superseded_at=None)
        rows.update(superseded_at=now)


def note_strays(mirror: Mirror, heads: dict[str, str], lease: Lease) -> None:
    """Branches at the destination that the source never had, or not for this mirror: shown, never touched."""
    if not mirror.source.branches.filter(position__gte=0).exists():
        return  # the source was not looked at since its rows were made
    noted = dict(mirror.branches.filter(stray=True).values_list("name", "head"))
    mirror.branches.filter(stray=True, name__in=noted.keys() - heads.keys()).delete()
    chosen = mirror.selection
    mirrored = set(mirror.branches.filter(stray=False).values_list("name", flat=True))
    source_names = mirror.source.branches.values_list("name", flat=True)
    for name in heads.keys() - {name for name in source_names if name in chosen or name in mirrored}:
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
    """A branch is not where this mirror put it: that goes into its history, whatever follows. One that has no row is
    somebody's, unless it is back: then it is ours, whatever keeps it from being put in order."""
    with locked_mirror(mirror, lease, settings=False):
        Promotion.objects.create(
            mirror=mirror, branch=branch, from_commit=noted, to_commit=head, why=why, at=clock.now()
        )
        known = {"head": head, "placed": "", "proven": False, "misplaced": why is not Why.FOUND}
        MirrorBranch.objects.update_or_create(
            mirror=mirror,
            name=branch,
            defaults=known | ({"stray": True} if stray else {}),
            create_defaults=known | {"stray": why is not Why.BACK, "misplaced": why is not Why.BACK},
        )
        if why is Why.FOUND:
            prove_heads(mirror)
    message = _MESSAGES.get(why, "somebody moved %s from %s to %s")
    log.error(f"%s: {message}", mirror.name, branch, noted[:8] or "nothing", head[:8] or "nothing")


_MESSAGES = {
    Why.FOUND: "%s was noted at %s and is at %s, where the source had it later: the books have lost that move",
    Why.BACK: "%s is not at %s any more but back at %s: somebody moved it, the destination was "
    "restored, or an earlier call of this mirror was carried out late",
    Why.VANISHED: "%s, which was at %s, is gone (%s): somebody deleted it, or the destination was restored",
}
