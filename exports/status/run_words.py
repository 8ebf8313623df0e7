"""Runs in words: how one ended or what it does, its icon, and how long it took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from core.exporting.state_machine import State
from exports.models import ExportRun

_ENDED = {
    State.SUCCESS: ("Exported", "check", "good"),
    State.FAILED: ("Failed", "cross", "bad"),
    State.REPAIRED: ("Resumed", "retry", "warn"),
}


@dataclass(frozen=True, slots=True)
class RunWords:
    """A run; `seconds` so far, or altogether."""

    run: ExportRun
    word: str
    icon: str
    tone: str
    seconds: float


def in_words(runs: Iterable[ExportRun], now: datetime) -> list[RunWords]:
    """Each run with its words."""
    return [RunWords(run, *_state(run), ((run.ended_at or now) - run.started_at).total_seconds()) for run in runs]


def _state(run: ExportRun) -> tuple[str, str, str]:
    if run.outcome in _ENDED:
        word, icon, tone = _ENDED[State(run.outcome)]
        return ("Drift repaired" if run.repairs_id and run.outcome == State.SUCCESS else word), icon, tone
    if run.ended_at is not None:
        return "Ended", "cross", "quiet"
    return run.get_phase_display().capitalize(), "arrows", "busy"
