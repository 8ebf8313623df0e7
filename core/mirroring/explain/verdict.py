"""What is said of a mirror or of a branch, and the parts of sentences that both share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.mirroring.facts import DutyFacts, MirrorFacts
from core.mirroring.states import State
from core.text.phrases import Phrase, count, sentence


@dataclass(frozen=True, slots=True)
class Verdict:
    """`brief` fits a table row; `sentence` stands alone. `since` and `retry_at` where there is such a time."""

    state: State
    reason_code: str
    sentence: Phrase
    brief: Phrase = Phrase()
    since: datetime | None = None
    retry_at: datetime | None = None


def tell_failing(failing: DutyFacts) -> str:
    """Which step, how often and why, as a part of a sentence."""
    tries = count(failing.failures, "time")
    return f"the step “{failing.kind}” failed {tries} in a row ({failing.outcome.rstrip('.')})"


def tell_unreachable(mirror: MirrorFacts) -> Phrase:
    """A sentence on why the source could not be looked at."""
    error = mirror.look_error.rstrip(".")
    return sentence(f"the look at {mirror.source_region} failed: {error}. It is repeated; the mirror keeps what it has")
