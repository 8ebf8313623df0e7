"""Why several mirrors wait at once: a region that does not answer, or replication that has stopped; told once and not
by each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from core.installations.outages import Outage, OutageKind, outage_phrase, outage_remedy
from core.installations.stopped_replication import Stop, Waits, find_stops, stop_phrase, stop_remedy
from core.mirroring.states import State
from core.text.phrases import Phrase, say, sentences
from installations import contact
from mirrors.queries.own_moves import last_arrivals
from mirrors.status.mirror import MirrorStatus

WAITING = frozenset({State.LATE, State.RETRYING, State.UNKNOWN, State.SYNCING, State.VALIDATING, State.NEW})
"""States that an outage is enough to explain. What is missing, damaged or tampered with has a cause of its own."""
REPLICATION = "replication"
_NOT_ARRIVED = ("object_missing", "range_missing", "metarange_missing")


@dataclass(frozen=True, slots=True)
class RootCause:
    """An outage of a region's `service`, or replication into it that has stopped, and the mirrors that depend on it, by
    name. `word`: what is wrong in a word; `told`: in a sentence; `phrase`: also what to do, the `remedy`. `problem`:
    what the last call got. `source_region`: where what does not arrive was written, "" for an outage."""

    region: str
    service: str
    status: str
    word: str
    since: datetime
    mirrors: Sequence[str]
    told: Phrase
    remedy: str
    problem: str = ""
    source_region: str = ""
    refused: bool = False

    @property
    def phrase(self) -> Phrase:
        """What is wrong, and what to do about it."""
        return sentences(self.told, say(self.remedy))

    @property
    def name(self) -> str:
        """What it is about, as the head of a line."""
        return f"{self.source_region} → {self.region}" if self.source_region else self.region


def root_causes(readings: Sequence[MirrorStatus], now: datetime) -> list[RootCause]:
    """Every outage of now, each with the mirrors of these that depend on it; then replication that has stopped."""
    outages = [_of_outage(outage, readings, now) for outage in contact.outages(now)]
    return [*outages, *(_of_stop(stop) for stop in _stops(readings, now))]


def untold_outages(reading: MirrorStatus) -> list[RootCause]:
    """Outages in the regions of a mirror of which its own sentence says nothing."""
    causes = [_of_outage(outage, [], reading.as_of) for outage in reading.outages]
    return [cause for cause in causes if str(cause.told) not in reading.sentence]


def outages_in(regions: Collection[str], now: datetime) -> list[RootCause]:
    """Outages in some regions, for a page that speaks of what is there."""
    return [_of_outage(outage, [], now) for outage in contact.outages(now) if outage.region in regions]


def _of_outage(outage: Outage, readings: Sequence[MirrorStatus], now: datetime) -> RootCause:
    names = sorted(reading.mirror.name for reading in readings if outage.region in _regions(reading))
    return RootCause(
        region=outage.region,
        service=outage.service.value,
        status=outage.kind.value,
        word=outage.kind.word,
        since=outage.since,
        mirrors=names,
        told=outage_phrase(outage, len(names), now),
        remedy=outage_remedy(outage),
        problem=outage.problem,
        refused=outage.kind is OutageKind.REFUSED,
    )


def _of_stop(stop: Stop) -> RootCause:
    source, region = stop.pair
    return RootCause(
        region=region,
        service=REPLICATION,
        status="stopped",
        word="Replication stopped",
        since=stop.since,
        mirrors=stop.mirrors,
        told=stop_phrase(stop),
        remedy=stop_remedy(stop),
        source_region=source,
    )


def _stops(readings: Sequence[MirrorStatus], now: datetime) -> list[Stop]:
    waiting = [one for one in map(_waits, readings) if one is not None]
    pairs = {one.pair for one in waiting}
    earliest = min((one.since for one in waiting), default=now)
    return find_stops(waiting, last_arrivals(pairs, earliest)) if len(waiting) > 1 else []


def _waits(reading: MirrorStatus) -> Waits | None:
    """Of a mirror that waits for so long that it needs somebody, and only for what may still arrive."""
    waits = reading.state in (State.BLOCKED, State.LATE) and reading.reason_code in _NOT_ARRIVED
    if not waits or reading.waiting_since is None:
        return None
    return Waits(reading.mirror.name, _regions(reading), reading.waiting_since)


def _regions(reading: MirrorStatus) -> tuple[str, str]:
    return reading.mirror.source.region, reading.mirror.region


def cause_of(reading: MirrorStatus, causes: Sequence[RootCause]) -> RootCause | None:
    """What is why a mirror waits, and told of by itself, if anything is."""
    return next((cause for cause in causes if _explains(cause, reading)), None)


def _explains(cause: RootCause, reading: MirrorStatus) -> bool:
    """What fails for good does so for a lakeFS that lets nobody in, not for one that is away."""
    if cause.service == REPLICATION:
        return _waits(reading) is not None and reading.mirror.name in cause.mirrors
    explained = reading.state in WAITING or (cause.refused and reading.state is State.FAILED)
    return explained and cause.region in _regions(reading)


def is_explained(reading: MirrorStatus, causes: Sequence[RootCause]) -> bool:
    """Whether something that is told of by itself is why a mirror waits."""
    return cause_of(reading, causes) is not None


def needing(readings: Sequence[MirrorStatus]) -> list[MirrorStatus]:
    """Those that need somebody, the worst first."""
    urgent = [reading for reading in readings if reading.needs_somebody]
    return sorted(urgent, key=lambda reading: (-reading.state.severity, -(reading.lag or 0), reading.mirror.name))


def needing_by_themselves(readings: Sequence[MirrorStatus], causes: Sequence[RootCause]) -> list[MirrorStatus]:
    """Mirrors that need somebody for a reason of their own, the worst first."""
    return [reading for reading in needing(readings) if not is_explained(reading, causes)]
