"""How passes stand, as pages and API tell it: from their own row and that of their link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.replicating.passes import WHY_WORDS, Action, PassState, Progress, progress_of
from replication.models import Pass

WORDS = {
    PassState.RUNNING: "Running",
    PassState.COMPLETED: "Completed",
    PassState.WITH_FAILURES: "Completed with failures",
    PassState.NOTHING: "Nothing eligible",
    PassState.FAILED: "Failed",
    PassState.CANCELED: "Canceled",
}
ACTION_WORDS = {
    Action.COPY: "copy",
    Action.OVERWRITE: "overwrite",
    Action.AGAIN: "send again",
    Action.EQUAL: "equal, left alone",
    Action.SKIP: "skip",
    Action.FAILED: "failed",
}


@dataclass(frozen=True, slots=True)
class ActionCount:
    """So many objects of a target have an action, for a reason if there is one."""

    link: int
    action: str
    why: str
    objects: int
    bytes: int

    @property
    def words(self) -> str:
        """The action in words; that of a newer version as it is."""
        word = ACTION_WORDS[Action(self.action)] if self.action in set(Action) else self.action
        return f"{word}: {WHY_WORDS.get(self.why, self.why)}" if self.why else word


@dataclass(frozen=True, slots=True)
class PassReading:
    """A pass, and what is said of it."""

    made: Pass
    progress: Progress
    actions: Sequence[ActionCount]
    as_of: datetime

    @property
    def word(self) -> str:
        """Its state in words."""
        return WORDS[PassState(self.made.state)] if self.made.state in set(PassState) else self.made.state

    @property
    def running(self) -> bool:
        """Whether it goes on."""
        return self.made.ended_at is None

    @property
    def in_trouble(self) -> bool:
        """Whether it ended otherwise than it should."""
        return self.made.state in (PassState.WITH_FAILURES, PassState.FAILED)

    @property
    def name(self) -> str:
        """Of the rule, be there one or not."""
        return self.made.rule.name if self.made.rule else str(self.made.wish["name"])


def pass_reading(made: Pass, now: datetime) -> PassReading:
    """One pass as it stands."""
    until = made.ended_at or now
    progress = progress_of(
        total=made.total,
        read=made.read_at is not None,
        looked_at=made.looked_at,
        waiting=made.waiting if made.ended_at is None else 0,
        seconds=(until - made.began_at).total_seconds(),
        pace=_pace(made),
    )
    if made.ended_at is not None:
        progress = progress._replace(eta=None)
    actions = [
        ActionCount(int(link), *_split(action), objects, size)
        for link, counts in sorted(made.actions.items(), key=lambda pair: int(pair[0]))
        for action, (objects, size) in sorted(counts.items())
    ]
    return PassReading(made, progress, actions, now)


def _split(action: str) -> tuple[str, str]:
    name, _, why = action.partition(":")
    return name, why


def _pace(made: Pass) -> float | None:
    """Objects a second that the link brings; None where nothing goes on, or nobody knows."""
    link = made.link
    if made.message or link is None or link.paused:
        return None
    return link.pace_objects or None
