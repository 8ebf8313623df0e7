"""Which commit should a mirror's branch point at? Pure; the duties carry the answer out and read it back.

Newest = order of sight, then position on the chain of first parents: both are in `position`. Dates are never asked.
Positions below -1 are those of inferred candidates: older than all that was seen, and only given for a mirror that may
show them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
class BranchFacts:
    """All that the decision for one branch needs.

    `candidates` in ascending position, from the one at `position` on (all of them when it is -1).
    `head` is what the destination says now ("" = no such branch), `noted` what it said when we last wrote it down;
    `position` the candidate that we last moved it to; `stray`: somebody else made the branch; `dropped`: it is no
    longer selected for this mirror, and is to be deleted there.
    """

    candidates: Sequence[CandidateCommit]
    head: str = ""
    noted: str = ""
    position: int = UNKNOWN
    stray: bool = False
    gone: bool = False
    default: bool = False
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """`commit_id` and `position` are those of the candidate that the branch should point at, "" and -1 if none."""

    action: Action
    why: Why
    commit_id: str = ""
    position: int = UNKNOWN


def choose_promotion(facts: BranchFacts, promotable: Callable[[str], bool]) -> Decision:
    """The newest promotable candidate wins; a branch never goes back unless the source did."""
    if facts.gone or facts.dropped:
        return _choose_deletion(facts, promotable)
    position = UNKNOWN if _made_by_others(facts, promotable) else _position_of(facts)
    chosen = _newest(facts.candidates, promotable, from_position=position)
    if chosen is None:
        return Decision(Action.NOTHING, Why.WAITING, facts.head, position)
    if chosen.commit_id == facts.head:
        why = Why.UP_TO_DATE if chosen is facts.candidates[-1] else Why.WAITING
        return Decision(Action.NOTHING, why, chosen.commit_id, chosen.position)
    action = Action.RESET if facts.head else Action.CREATE
    return Decision(action, _why(facts, chosen, position), chosen.commit_id, chosen.position)


def moved_by_others(facts: BranchFacts, promotable: Callable[[str], bool]) -> bool:
    """Whether somebody else put the branch where it is, or took it away.

    A candidate that we may show counts as ours: a worker that ended between its call and its note leaves that. One
    that left it before the source deleted the branch and made it again leaves no trace: that blames nobody.
    """
    made_again = facts.position >= 0 and all(c.position != facts.position for c in facts.candidates)
    if facts.head == facts.noted or made_again:
        return False
    if not facts.head:
        return not (facts.gone or facts.dropped)
    return not any(c.commit_id == facts.head and promotable(c.commit_id) for c in facts.candidates)


def _made_by_others(facts: BranchFacts, promotable: Callable[[str], bool]) -> bool:
    """Whether the branch was never ours: where it stands then binds us to nothing."""
    return facts.stray or (not facts.noted and moved_by_others(facts, promotable))


def _choose_deletion(facts: BranchFacts, promotable: Callable[[str], bool]) -> Decision:
    """A branch is deleted only if we made it."""
    why = Why.GONE if facts.gone else Why.UNSELECTED
    if facts.default:
        return Decision(Action.NOTHING, Why.DEFAULT_STAYS, facts.head, facts.position)
    if not facts.head:
        return Decision(Action.NOTHING, why)
    if _made_by_others(facts, promotable):
        return Decision(Action.NOTHING, Why.NOT_OURS)
    return Decision(Action.DELETE, why)


def _position_of(facts: BranchFacts) -> int:
    """Where the branch stands: as we recorded, else the newest candidate equal to what the destination says."""
    if facts.position != UNKNOWN or not facts.head:
        return facts.position
    same = [candidate.position for candidate in facts.candidates if candidate.commit_id == facts.head]
    return max(same, default=UNKNOWN)


def _newest(
    candidates: Sequence[CandidateCommit], promotable: Callable[[str], bool], *, from_position: int
) -> CandidateCommit | None:
    for candidate in reversed(candidates):
        if from_position != UNKNOWN and candidate.position < from_position:
            return None
        if promotable(candidate.commit_id):
            return candidate
    return None


def _why(facts: BranchFacts, chosen: CandidateCommit, position: int) -> Why:
    if chosen.position < UNKNOWN and chosen.position != position:
        return Why.INFERRED
    if not facts.noted or facts.stray:
        return Why.FIRST
    if chosen.position == position:
        return Why.REPAIRED
    moved = any(not c.fast_forward for c in facts.candidates if position < c.position <= chosen.position)
    return Why.REWOUND if moved else Why.ADVANCED


def superseded(candidates: Sequence[CandidateCommit], *, after: int, before: int) -> list[str]:
    """Commits that were never the mirror's head because a newer one became it."""
    return [c.commit_id for c in candidates if max(after, UNKNOWN) < c.position < before]
