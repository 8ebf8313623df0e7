"""What is said of a mirror or of a branch, and the parts of sentences that both share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.mirroring.facts import DutyFacts, MirrorFacts
from core.mirroring.states import State
from core.text.phrases import Phrase, say, sentence


@dataclass(frozen=True, slots=True)
class Verdict:
    """`brief` fits a table row; `sentence` stands alone. `since` and `retry_at` where there is such a time."""

    state: State
    reason_code: str
    sentence: Phrase
    brief: Phrase = Phrase()
    since: datetime | None = None
    retry_at: datetime | None = None


STEPS = {
    "manage": "setting up the repository",
    "sense": "polling the source",
    "copy": "copying commit records",
    "validate": "validation",
    "sweep": "looking for what garbage collection left",
    "promote": "moving branches",
}
"""What each kind of duty does, as the subject of a sentence."""
TRIED_AGAIN = say("Retrying.")
TRIED_ONCE_CHANGED = say("It is retried, and continues once that is fixed.")


def step_of(failing: DutyFacts) -> str:
    """What the duty does."""
    return STEPS.get(failing.kind, failing.kind)


def tell_failing(failing: DutyFacts) -> str:
    """Which step, how often and why, as a part of a sentence."""
    return f"{step_of(failing)} failed {_tries(failing)} ({failing.outcome.rstrip('.')})"


def failed_times(failing: DutyFacts) -> str:
    """The same for a row of a table."""
    return f"{step_of(failing)} failed {_tries(failing)}"


def _tries(failing: DutyFacts) -> str:
    return "once" if failing.failures == 1 else f"{failing.failures:,} times in a row"


def what_follows(failing: DutyFacts) -> Phrase:
    """Whether waiting may help, as a sentence."""
    return TRIED_ONCE_CHANGED if failing.refused else TRIED_AGAIN


def state_of(failing: DutyFacts | None) -> State:
    """Failed where somebody has to change something first; else it is being retried."""
    return State.FAILED if failing is not None and failing.refused else State.RETRYING


def tell_unreachable(mirror: MirrorFacts) -> Phrase:
    """A sentence on why the source could not be looked at."""
    error = mirror.look_error.rstrip(".")
    return sentence(f"polling {mirror.source_region} failed: {error}. Retrying; the mirror keeps what it has")
