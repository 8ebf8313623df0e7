"""Which commit should a mirror's branch point at? Pure; the duties carry the answer out and read it back.

Newest = order of sight, then position on the chain of first parents: both are in `position`. Dates are never asked.
Positions below -1 are those of inferred candidates: older than all that was seen, and only given for a mirror that may
show them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

UNKNOWN = -1
"""The position of a branch that stands at no candidate of which we know."""


class Action(StrEnum):
    """What to do with the branch at the destination."""

    NOTHING = "nothing"
    CREATE = "create"
    RESET = "reset"
    DELETE = "delete"


class Why(StrEnum):
    """The reason, as it is recorded with the promotion and shown."""

    UP_TO_DATE = "up-to-date"
    WAITING = "waiting"
    FIRST = "first-promotion"
    INFERRED = "inferred"
    ADVANCED = "advanced"
    REWOUND = "source-moved"
    REPAIRED = "put-back"
    FOREIGN = "moved-by-somebody"
    BACK = "back-where-it-was"
    VANISHED = "gone-at-the-mirror"
    FOUND = "found-there"
    WRITTEN = "written-by-somebody"
    UNDONE = "uncommitted-changes-undone"
    GONE = "deleted-at-source"
    UNSELECTED = "no-longer-selected"
    DEFAULT_STAYS = "default-branch-is-never-deleted"
    NOT_OURS = "not-made-by-this-mirror"


class Repair(StrEnum):
    """What becomes of uncommitted changes on a mirror's branch: they are shown, or undone at once."""

    REPORT = "report"
    AUTO = "auto"


@dataclass(frozen=True, slots=True)
class CandidateCommit:
    """A commit that the source branch pointed to. `fast_forward` is false where the source moved otherwise."""

    commit_id: str
    position: int
    fast_forward: bool = True


@dataclass(frozen=True, slots=True)
class PromotionFacts:
    """All that the decision for one branch needs.

    `candidates` in ascending position, from the one at `position` on (all of them when it is -1).
    `head` is what the destination says now ("" = no such branch), `noted` what it said when we last wrote it down;
    `position` the candidate that we last moved it to; `stray`: somebody else made the branch; `dropped`: it is no
    longer selected for this mirror, and is to be deleted there. `intended` are the commits that we lately meant to move
    it to ("" for a deletion), whatever came of that; `former`: it stood at `head` before, by our own doing;
    `misplaced`: it was noted where this mirror did not put it; `condemned`: it stands ahead of where this mirror put
    it, at a commit that is known not to be whole, and nothing tells that it was us; `anew`: the source deleted the
    branch and made it again since: the first candidate is no more than where this mirror put it before that.
    """

    candidates: Sequence[CandidateCommit]
    head: str = ""
    noted: str = ""
    position: int = UNKNOWN
    stray: bool = False
    gone: bool = False
    default: bool = False
    dropped: bool = False
    intended: frozenset[str] = frozenset()
    former: bool = False
    misplaced: bool = False
    condemned: bool = False
    anew: bool = False


class Whose(StrEnum):
    """By whom a branch came to stand where it is, if not where it was noted.

    `ahead`: at a commit that the source pointed to later than what our books know of: they have lost their last
    moments. `back` and `vanished`: somebody's doing, or a destination that was restored from a backup.
    """

    NOTED = "noted"
    OURS = "ours"
    AHEAD = "ahead"
    BACK = "back"
    VANISHED = "vanished"
    OTHERS = "others"


UNEXPLAINED = {Whose.OTHERS: Why.FOREIGN, Whose.BACK: Why.BACK, Whose.VANISHED: Why.VANISHED}
"""A branch or tag does not stand where its mirror had left it: somebody's doing, or a restored destination's."""
MOVED_BY_OTHERS = tuple(UNEXPLAINED.values())


@dataclass(frozen=True, slots=True)
class Decision:
    """`commit_id` and `position` are those of the candidate that the branch should point at, "" and -1 if none."""

    action: Action
    why: Why
    commit_id: str = ""
    position: int = UNKNOWN


def choose_promotion(facts: PromotionFacts, promotable: Callable[[str], bool]) -> Decision:
    """The newest promotable candidate wins; a branch never goes back unless the source did."""
    if facts.gone or facts.dropped:
        return _choose_deletion(facts)
    position = _position_of(facts, promotable)
    chosen = _newest(facts.candidates, promotable, from_position=position)
    if chosen is None:
        return Decision(Action.NOTHING, Why.WAITING, facts.head, position)
    if chosen.commit_id == facts.head:
        why = Why.UP_TO_DATE if chosen is facts.candidates[-1] else Why.WAITING
        return Decision(Action.NOTHING, why, chosen.commit_id, chosen.position)
    action = Action.RESET if facts.head else Action.CREATE
    return Decision(action, _why(facts, chosen, position), chosen.commit_id, chosen.position)


def whose_move(facts: PromotionFacts) -> Whose:
    """Who brought the branch where it is, or took it away. Nobody is blamed for what we may have done ourselves."""
    if facts.head == facts.noted:
        return Whose.NOTED
    if facts.head in facts.intended:
        return Whose.OURS
    if not facts.head:
        return Whose.NOTED if facts.gone or facts.dropped else Whose.VANISHED
    if facts.noted and not (facts.stray or facts.condemned) and facts.head in {c.commit_id for c in facts.candidates}:
        return Whose.AHEAD
    return Whose.BACK if facts.former else Whose.OTHERS


class OwnMove(StrEnum):
    """What is to be noted of a move of ours that the books don't know: that it was made, or that it came too late.

    `late`: the branch had been moved on since, and was brought back by a call that was given up.
    """

    MOVED = "moved"
    DELETED = "deleted"
    LATE = "late"


def own_move(facts: PromotionFacts, position: int) -> OwnMove:
    """What became of a move of ours to where the branch is; `position` is the one that was intended."""
    if not facts.head:
        return OwnMove.DELETED if facts.gone or facts.dropped or facts.anew else OwnMove.LATE
    late = facts.position != UNKNOWN and 0 <= position < facts.position
    return OwnMove.LATE if late else OwnMove.MOVED


def without_branch(facts: PromotionFacts) -> PromotionFacts:
    """The facts once our own deletion is noted: where the branch stood before is nothing to bring it back to."""
    remaining = [c for c in facts.candidates if not facts.anew or c.position > facts.position]
    return replace(facts, candidates=remaining, noted="", position=UNKNOWN)


def is_news(facts: PromotionFacts, decision: Decision, promotable: Callable[[str], bool]) -> bool:
    """Whether the branch is where it should be, at a whole commit, although the books say otherwise."""
    in_place = facts.head and facts.head == decision.commit_id and decision.position != UNKNOWN
    if not in_place or not promotable(decision.commit_id):
        return False
    noted = facts.position == decision.position and facts.noted == facts.head
    return facts.stray or facts.misplaced or not noted


def _was_never_ours(facts: PromotionFacts) -> bool:
    return facts.stray or (not facts.noted and whose_move(facts) is Whose.OTHERS)


def _made_by_others(facts: PromotionFacts, promotable: Callable[[str], bool]) -> bool:
    """Whether the branch was never ours. At a whole commit of the source's branch it is as good as ours."""
    if not _was_never_ours(facts):
        return False
    if facts.stray:
        return True
    return not any(c.commit_id == facts.head and promotable(c.commit_id) for c in facts.candidates)


def _choose_deletion(facts: PromotionFacts) -> Decision:
    """A branch is deleted only if we made it, wherever somebody else has put one of its name."""
    why = Why.GONE if facts.gone else Why.UNSELECTED
    if facts.default:
        return Decision(Action.NOTHING, Why.DEFAULT_STAYS, facts.head, facts.position)
    if not facts.head:
        return Decision(Action.NOTHING, why)
    if _was_never_ours(facts):
        return Decision(Action.NOTHING, Why.NOT_OURS)
    return Decision(Action.DELETE, why)


def _position_of(facts: PromotionFacts, promotable: Callable[[str], bool]) -> int:
    """Where the branch stands: as we recorded, or the newest candidate equal to what the destination says.

    Where others made it binds us to nothing, unless the source's branch pointed there: it is not moved back.
    """
    head = "" if facts.condemned else facts.head
    same = [candidate.position for candidate in facts.candidates if head and head == candidate.commit_id]
    own = facts.position if facts.position != UNKNOWN and not _made_by_others(facts, promotable) else None
    return max(same if own is None else [*same, own], default=UNKNOWN)


def _newest(
    candidates: Sequence[CandidateCommit], promotable: Callable[[str], bool], *, from_position: int
) -> CandidateCommit | None:
    for candidate in reversed(candidates):
        if from_position != UNKNOWN and candidate.position < from_position:
            return None
        if promotable(candidate.commit_id):
            return candidate
    return None


def _why(facts: PromotionFacts, chosen: CandidateCommit, position: int) -> Why:
    if chosen.position < UNKNOWN and chosen.position != position:
        return Why.INFERRED
    if facts.stray or not (facts.noted or facts.misplaced):
        return Why.FIRST
    if chosen.position == position:
        return Why.REPAIRED
    moved = any(not c.fast_forward for c in facts.candidates if position < c.position <= chosen.position)
    return Why.REWOUND if moved else Why.ADVANCED


def superseded(candidates: Sequence[CandidateCommit], *, after: int, before: int) -> list[str]:
    """Commits that were never the mirror's head because a newer one became it."""
    return [c.commit_id for c in candidates if max(after, UNKNOWN) < c.position < before]
