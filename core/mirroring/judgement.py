"""May a ref of a mirror point to a commit, now? One judge for all who ask; pure.

Its facts are read at the moment of the act, in the transaction that writes the intent to move. The same judgement
stands behind certificates, pages and answers: what is told and what is done can't differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Obstacle(StrEnum):
    """What keeps a ref from being moved to a commit. The first of them that applies is told."""

    STOPPED = "mirror-not-active"
    PAUSED = "mirror-paused"
    FROZEN = "source-frozen"
    CHANGED = "settings-changed"
    REPLACED = "destination-replaced"
    RETURNED = "returned"
    UNKNOWN = "not-mirrored"
    RECORD = "record"
    WAIVED = "waived"
    METARANGE = "metarange"
    PROBLEMS = "problems"
    GONE = "gone"
    RANGES = "ranges"
    HISTORY = "history"

    @property
    def is_certain(self) -> bool:
        """Whether a reader of the commit is known to meet it; else nobody knows until something is checked."""
        return self in _CERTAIN


_CERTAIN = {Obstacle.RECORD, Obstacle.PROBLEMS, Obstacle.GONE}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitProof:
    """What is proven of one commit at one mirror, by its settings as they are now.

    `metarange` is the state of its metarange there: complete, waiting, gone, unknown (not looked for), or "" for a
    commit that needs none. `ranges` is how many it names, None while that is not at hand; `proven` of them are
    complete at the mirror's depth and in no question. `problems` counts what is known to be missing or wrong of what
    it names; `gone` of it at the source too. `history`: all of its ancestors serve. `elsewhere`: all of this was found
    at another store than the mirror's region has now.
    """

    record: str
    waived: bool
    history: bool
    metarange: str
    ranges: int | None = 0
    proven: int = 0
    problems: int = 0
    gone: int = 0
    elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What holds for the mirror as a whole: `unchanged` are settings and selection since the decision was made."""

    active: bool = True
    paused: bool = False
    frozen: bool = False
    unchanged: bool = True
    pinned: bool = True


@dataclass(frozen=True, slots=True)
class Judgement:
    """`obstacle` is None where a ref may point to the commit; `detail` says more, in words."""

    obstacle: Obstacle | None = None
    detail: str = ""

    @property
    def allowed(self) -> bool:
        """Whether a ref may point to the commit now."""
        return self.obstacle is None


def judge_circumstances(around: Circumstances) -> Judgement:
    """Whether anything at all may be moved or deleted at this mirror now."""
    if not around.active:
        return Judgement(Obstacle.STOPPED, "the mirror is not active")
    if around.paused:
        return Judgement(Obstacle.PAUSED, "the mirror is paused")
    if around.frozen:
        return Judgement(Obstacle.FROZEN, "the source is frozen")
    if not around.unchanged:
        return Judgement(Obstacle.CHANGED, "the mirror's settings have changed meanwhile")
    if not around.pinned:
        return Judgement(Obstacle.REPLACED, "its repository or store has been replaced meanwhile")
    return Judgement()


def judge_commit(proof: CommitProof | None) -> Judgement:
    """Whether a commit is proven whole at its mirror now, history included."""
    if proof is None:
        return Judgement(Obstacle.UNKNOWN, "it is not mirrored there")
    if proof.elsewhere:
        return Judgement(Obstacle.REPLACED, "its region has another store now, where nothing has been validated yet")
    if proof.record != "accepted":
        return Judgement(Obstacle.RECORD, f"its record is {proof.record}")
    if proof.waived:
        return Judgement(Obstacle.WAIVED, "it is waived")
    return _judge_data(proof) or _judge_history(proof)


def _judge_data(proof: CommitProof) -> Judgement | None:
    if proof.problems > proof.gone:
        singular, plural = "1 object of it is missing or wrong", "objects of it are missing or wrong"
        return Judgement(Obstacle.PROBLEMS, singular if proof.problems == 1 else f"{proof.problems} {plural}")
    if proof.gone or proof.metarange == "gone":
        return Judgement(Obstacle.GONE, "an object of it is missing on both sides")
    if proof.metarange not in ("", "complete"):
        return Judgement(Obstacle.METARANGE, f"its metarange is {proof.metarange}")
    if proof.ranges is None:
        return Judgement(Obstacle.METARANGE, "its metarange has not been read")
    if proof.proven != proof.ranges:
        return Judgement(Obstacle.RANGES, f"{proof.proven} of its {proof.ranges} ranges are validated")
    return None


def _judge_history(proof: CommitProof) -> Judgement:
    return Judgement() if proof.history else Judgement(Obstacle.HISTORY, "a commit that it descends from is incomplete")


def judge_deletion(around: Circumstances, *, at_source: bool) -> Judgement:
    """Whether a ref that the source deleted may be deleted now; `at_source`: the source has it again."""
    wide = judge_circumstances(around)
    if wide.allowed and at_source:
        return Judgement(Obstacle.RETURNED, "the source has it again")
    return wide


def judge_move(proof: CommitProof | None, around: Circumstances) -> Judgement:
    """Whether a ref may be created at, or moved to, a commit now."""
    wide = judge_circumstances(around)
    return wide if not wide.allowed else judge_commit(proof)
