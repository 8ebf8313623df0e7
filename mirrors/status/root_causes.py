"""Why several mirrors wait at once: a region's lakeFS or store that does not answer, told once and not by each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.installations.outages import Outage, OutageKind, outage_phrase, outage_remedy
from core.mirroring.states import State, Tone
from core.text.phrases import Phrase, say, sentences
from installations import contact
from mirrors.status.mirror import MirrorStatus

WAITING = frozenset({State.LATE, State.RETRYING, State.UNKNOWN, State.SYNCING, State.VALIDATING, State.NEW})
"""States that an outage is enough to explain. What is missing, damaged or tampered with has a cause of its own."""


@dataclass(frozen=True, slots=True)
class RootCause:
    """An outage and the mirrors with a side in its region, by name. `told`: what is wrong; `phrase`: also what to
    do."""

    outage: Outage
    mirrors: Sequence[str]
    told: Phrase
    phrase: Phrase


def root_causes(readings: Sequence[MirrorStatus], now: datetime) -> list[RootCause]:
    """Every outage of now, each with the mirrors of these that depend on it."""
    return [_cause(outage, readings, now) for outage in contact.outages(now)]


def _cause(outage: Outage, readings: Sequence[MirrorStatus], now: datetime) -> RootCause:
    names = sorted(reading.mirror.name for reading in readings if outage.region in _regions(reading))
    told = outage_phrase(outage, len(names), now)
    return RootCause(outage, names, told, sentences(told, say(outage_remedy(outage))))


def _regions(reading: MirrorStatus) -> tuple[str, str]:
    return reading.mirror.source.region, reading.mirror.region


def cause_of(reading: MirrorStatus, causes: Sequence[RootCause]) -> RootCause | None:
    """The outage that is why a mirror waits, if it is one."""
    regions = _regions(reading) if reading.state in WAITING or reading.state is State.FAILED else ()
    return next((cause for cause in causes if cause.outage.region in regions and _explains(cause, reading)), None)


def _explains(cause: RootCause, reading: MirrorStatus) -> bool:
    """What fails for good does so for a lakeFS that lets nobody in, not for one that is away."""
    return reading.state in WAITING or cause.outage.kind is OutageKind.REFUSED


def is_explained(reading: MirrorStatus, causes: Sequence[RootCause]) -> bool:
    """Whether an outage is why a mirror waits."""
    return cause_of(reading, causes) is not None


def needing(readings: Sequence[MirrorStatus]) -> list[MirrorStatus]:
    """Those that need somebody, the worst first."""
    urgent = [reading for reading in readings if reading.state.tone is Tone.BAD]
    return sorted(urgent, key=lambda reading: (-reading.state.severity, -(reading.lag or 0), reading.mirror.name))


def needing_by_themselves(readings: Sequence[MirrorStatus], causes: Sequence[RootCause]) -> list[MirrorStatus]:
    """Mirrors that need somebody for a reason of their own, the worst first."""
    return [reading for reading in needing(readings) if not is_explained(reading, causes)]
