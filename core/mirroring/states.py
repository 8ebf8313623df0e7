"""The words for how a mirror, a branch or a commit is doing. One list for pages, API and metrics."""

from __future__ import annotations

from enum import StrEnum


class Tone(StrEnum):
    """How loudly a state speaks. `bad` is kept for where somebody must act, or data is late beyond its target."""

    GOOD = "good"
    BUSY = "busy"
    WARN = "warn"
    BAD = "bad"
    QUIET = "quiet"


class State(StrEnum):
    """A state by its code, from the mildest to the worst: the order in which the worst of many is chosen."""

    UP_TO_DATE = "up_to_date"
    UNSELECTED = "not_mirrored"
    LEAVING = "gone_at_source"
    NEW = "new"
    SYNCING = "syncing"
    VALIDATING = "validating"
    REWOUND = "source_rewound"
    RETRYING = "retrying"
    PAUSED = "paused"
    UNKNOWN = "unknown"
    UNPROVEN = "not_proven"
    LATE = "late"
    BLOCKED = "blocked"
    DAMAGED = "damaged"
    TAMPERED = "tampered"
    FAILED = "failed"
    FROZEN = "frozen"
    STOPPED = "stopped"

    @property
    def word(self) -> str:
        """The state as a person reads it."""
        return self.value.replace("_", " ").capitalize()

    @property
    def tone(self) -> Tone:
        """The state's colour, by meaning."""
        return _TONES[self]

    @property
    def severity(self) -> int:
        """Larger is worse."""
        return _ORDER[self]


_TONES = {
    State.UP_TO_DATE: Tone.GOOD,
    State.UNSELECTED: Tone.QUIET,
    State.LEAVING: Tone.QUIET,
    State.NEW: Tone.QUIET,
    State.SYNCING: Tone.BUSY,
    State.VALIDATING: Tone.BUSY,
    State.REWOUND: Tone.WARN,
    State.RETRYING: Tone.WARN,
    State.PAUSED: Tone.QUIET,
    State.UNKNOWN: Tone.WARN,
    State.UNPROVEN: Tone.WARN,
    State.LATE: Tone.BAD,
    State.BLOCKED: Tone.BAD,
    State.DAMAGED: Tone.BAD,
    State.TAMPERED: Tone.BAD,
    State.FAILED: Tone.BAD,
    State.FROZEN: Tone.BAD,
    State.STOPPED: Tone.BAD,
}
ASIDE = frozenset({State.UNSELECTED, State.LEAVING})
"""Branches in these states say nothing about how well their mirror is doing."""
NOT_KNOWN = frozenset({State.UNKNOWN, State.UNPROVEN})
"""Whether a mirror in one of these states is well, nobody knows."""
_ORDER = {state: number for number, state in enumerate(State)}


class Stage(StrEnum):
    """How far one commit of a branch has come at a mirror; what the rail draws."""

    PAST = "past"
    HEAD = "head"
    READY = "ready"
    CHECKING = "checking"
    WAITING = "waiting"
    BLOCKED = "blocked"
    GONE = "gone"
    WAIVED = "waived"

    @property
    def word(self) -> str:
        """The stage as a person reads it."""
        return _STAGE_WORDS.get(self, self.value.capitalize())


_STAGE_WORDS = {
    Stage.PAST: "Earlier",
    Stage.HEAD: "Mirror head",
    Stage.CHECKING: "Validating",
    Stage.GONE: "Gone at source",
}
