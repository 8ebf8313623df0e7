"""How a link stands, by what came of its tries. Pure.

Down: three times in ten seconds nobody answered. Blocked: twenty refusals of one kind in a row. Then nothing is tried
but a probe: of a link that is down after 1, 2, 4 ... 30 s, of one that is blocked once a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from core.replicating.outcomes import Kind, Outcome
from core.replicating.retries import PROBE_BLOCKED, probe_pause
from core.replicating.states import Code, Health

SILENCES = 3
SILENT_WITHIN = timedelta(seconds=10)
REFUSALS = 20
GRACE = timedelta(seconds=10)
"""So long after a link is up again no refusals block it: something just arrived, so those are of single objects."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What may yet make a link that is up down or blocked: refusals in a row, of which kind; when nobody answered."""

    refusals: int = 0
    code: str = ""
    silences: tuple[datetime, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As a column keeps it."""
        return {"refusals": self.refusals, "code": self.code, "silences": [at.isoformat() for at in self.silences]}

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> Tally:
        """What was kept; {} is nothing."""
        silences = tuple(datetime.fromisoformat(at) for at in told.get("silences", ()))
        return cls(int(told.get("refusals", 0)), str(told.get("code", "")), silences)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a link stands since when, why, and when it is tried next (None: it is up)."""

    state: Health = Health.UP
    since: datetime | None = None
    code: str = ""
    message: str = ""
    probe_at: datetime | None = None
    probes: int = 0
    tally: Tally = Tally()

    def may_try(self, now: datetime) -> bool:
        """Whether anything may be tried: all that is due of a link that is up, else one probe. One that is due later
        than probes ever are was put down by a clock that was ahead."""
        if self.state is Health.UP or self.probe_at is None:
            return True
        return not now < self.probe_at <= now + timedelta(seconds=PROBE_BLOCKED)


def after(standing: Standing, outcome: Outcome, now: datetime) -> Standing:
    """How a link stands after one more try, of an object or as a probe."""
    if outcome.kind is Kind.DONE:
        return _up(standing, now)
    if outcome.kind is Kind.SILENT:
        return _after_silence(standing, outcome, now)
    if outcome.kind is Kind.REFUSED:
        return _after_refusal(standing, outcome, now)
    if outcome.kind is Kind.FAILED:
        return _up(standing, now)
    if outcome.kind is Kind.RETRY and standing.state is not Health.UP:
        return _probed(standing, outcome, now)
    return standing


def answered(standing: Standing, now: datetime) -> Standing:
    """How a link stands after both ends have answered, whatever they say to a copy."""
    if standing.state is Health.DOWN:
        return Standing(Health.UP, now)
    silent = standing.tally.silences
    return replace(standing, tally=replace(standing.tally, silences=())) if silent else standing


def _up(standing: Standing, now: datetime) -> Standing:
    if standing.state is Health.UP:
        return standing if standing.tally == Tally() else replace(standing, tally=Tally())
    return Standing(Health.UP, now)


def _after_silence(standing: Standing, outcome: Outcome, now: datetime) -> Standing:
    if standing.state is Health.DOWN:
        return _probed(standing, outcome, now)
    recent = (*(at for at in standing.tally.silences if abs(now - at) < SILENT_WITHIN), now)[-SILENCES:]
    if standing.state is Health.UP and len(recent) < SILENCES:
        return replace(standing, tally=replace(standing.tally, silences=recent))
    return Standing(Health.DOWN, now, outcome.code, outcome.message, now + timedelta(seconds=probe_pause(0)))


def _after_refusal(standing: Standing, outcome: Outcome, now: datetime) -> Standing:
    if standing.state is Health.BLOCKED:
        return _probed(standing, outcome, now)
    same = standing.state is Health.UP and standing.tally.code == outcome.code
    refusals = standing.tally.refusals + 1 if same else 1
    fresh = standing.state is Health.UP and standing.since is not None and abs(now - standing.since) < GRACE
    if refusals >= REFUSALS and not fresh:
        return Standing(Health.BLOCKED, now, outcome.code, outcome.message, now + timedelta(seconds=PROBE_BLOCKED))
    tally = Tally(refusals, outcome.code)
    return Standing(Health.UP, now, tally=tally) if standing.state is Health.DOWN else replace(standing, tally=tally)


def _probed(standing: Standing, outcome: Outcome, now: datetime) -> Standing:
    """A probe failed: it stands as it did, for what was said last."""
    probes = standing.probes + 1
    pause = PROBE_BLOCKED if standing.state is Health.BLOCKED else probe_pause(probes)
    code = Code(outcome.code) if outcome.kind is not Kind.RETRY else standing.code
    at = now + timedelta(seconds=pause)
    return replace(standing, code=code, message=outcome.message, probe_at=at, probes=probes)
