"""A commit's life at a mirror as five steps, each with its time or what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from core.mirroring.explain.blocker_text import describe_lack
from core.mirroring.facts import CommitFacts
from core.mirroring.states import Stage
from core.text.phrases import Phrase, say


class Rung(StrEnum):
    """How a step of the ladder stands."""

    DONE = "done"
    NOW = "now"
    BLOCKED = "blocked"
    TODO = "todo"


@dataclass(frozen=True, slots=True)
class CommitStep:
    """One step. `at`: when it was done; `after`: seconds since the first sight; `note`: what it waits for."""

    code: str
    name: str
    rung: Rung
    at: datetime | None = None
    after: float | None = None
    note: Phrase = Phrase()


def climb(
    commit: CommitFacts | None, *, seen_at: datetime, stage: Stage, region: str, source_region: str
) -> tuple[CommitStep, ...]:
    """The five steps of a commit that was first seen at `seen_at`."""
    times = step_times(commit, seen_at)
    reached = max(number for number, (_, _, at) in enumerate(times) if at)
    settled = stage in (Stage.HEAD, Stage.PAST)
    note = _note(commit, stage, region, source_region)
    steps = []
    for number, (code, name, at) in enumerate(times):
        rung = _rung(number, reached, stage, settled)
        waits = note if number == reached + 1 and not settled else say()
        steps.append(CommitStep(code, name, rung, at, _after(at, seen_at), waits))
    return tuple(steps)


def step_times(commit: CommitFacts | None, seen_at: datetime) -> Sequence[tuple[str, str, datetime | None]]:
    """Code and name of each step, and when it was done; None: not yet."""
    known = commit or CommitFacts(commit_id="")
    last = ("promoted", "Promoted", known.promoted_at)
    if known.superseded_at and not known.promoted_at:
        last = ("superseded", "Superseded", known.superseded_at)
    return (
        ("seen", "Seen", seen_at),
        ("recorded", "Record copied", known.recorded_at),
        ("metadata", "Metadata arrived", known.metadata_at),
        ("validated", "Objects validated", known.validated_at),
        last,
    )


def last_step(steps: Sequence[tuple[str, str, datetime | None]]) -> str:
    """The code of the last one that is done."""
    return [code for code, _, at in steps if at][-1]


def _rung(number: int, reached: int, stage: Stage, settled: bool) -> Rung:
    if number <= reached or settled:
        return Rung.DONE
    if number > reached + 1 or stage is Stage.WAIVED:
        return Rung.TODO
    return Rung.BLOCKED if stage in (Stage.BLOCKED, Stage.GONE) else Rung.NOW


def _after(at: datetime | None, seen_at: datetime) -> float | None:
    """Seconds since the first sight; None for steps that came before it, as for history copied from elsewhere."""
    if at is None or at < seen_at:
        return None
    return (at - seen_at).total_seconds()


def _note(commit: CommitFacts | None, stage: Stage, region: str, source_region: str) -> Phrase:
    if stage is Stage.WAIVED:
        return say("waived")
    if commit and commit.in_trouble:
        return describe_lack(commit, region=region, source_region=source_region).brief
    if stage is Stage.GONE:
        return say("missing on both sides")
    if commit and commit.data == "complete" and not commit.history:
        return say("waits for its ancestors")
    return say({Stage.READY: "about to be promoted", Stage.CHECKING: "being validated"}.get(stage, ""))
