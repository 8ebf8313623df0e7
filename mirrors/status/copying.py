"""What LakeMirror copies for a mirror now, in which lanes, how fast, what is left of it, and how much it has copied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.bringing import ObjectReplication
from core.text.eta import expected_end, per_second
from mirrors.models import Mirror, Run
from mirrors.status.runs import is_held


@dataclass(frozen=True, slots=True)
class Lane:
    """Objects of one size, of the run at work: `waiting` have not had their turn, `in_flight` are copied now, `failed`
    had it and were not copied, for want of time or for a reason that is told of each."""

    name: str
    lacking: int
    waiting: int
    in_flight: int
    copied: int
    failed: int


@dataclass(frozen=True, slots=True)
class Going:
    """The run at work: of the objects that it found missing so far, `left` are not here. Rates are those since it
    began; bytes count as soon as they have passed, so that a large object counts while it is copied."""

    run: Run
    lanes: Sequence[Lane]
    objects_per_second: float | None
    bytes_per_second: float | None
    ends_at: datetime | None

    @property
    def left(self) -> int:
        """How many objects."""
        return self.run.lacking - self.run.copied

    @property
    def in_flight(self) -> int:
        """In all lanes together."""
        return sum(lane.in_flight for lane in self.lanes)

    @property
    def failed(self) -> int:
        """How many had their turn and were not copied."""
        return sum(lane.failed for lane in self.lanes)


@dataclass(frozen=True, slots=True)
class Copying:
    """`total` objects, of so many bytes, were copied since there is the mirror. `going`: None where nothing is found to
    be copied at the moment."""

    paused: bool
    total: int
    total_bytes: int
    going: Going | None = None


def copying_of(mirror: Mirror, now: datetime) -> Copying | None:
    """Of a mirror whose objects LakeMirror copies; None where the stores do."""
    if mirror.object_replication != ObjectReplication.MANAGED:
        return None
    return Copying(mirror.copying_paused, mirror.copied, mirror.copied_bytes, going_on(mirror, now))


def going_on(mirror: Mirror, now: datetime) -> Going | None:
    """What is copied now, if anything is."""
    run = mirror.runs.filter(ended_at=None, lacking__gt=0).first()
    if run is None or not is_held(mirror, now):
        return None
    passed = sum(lane["passed_bytes"] for lane in run.lanes.values())
    return Going(
        run,
        [_lane(name, run.lanes[name]) for name in Run.LANES if name in run.lanes],
        per_second(run.copied, run.started_at, now),
        per_second(max(run.copied_bytes, passed), run.started_at, now),
        expected_end(run.copied, run.lacking, run.started_at, now),
    )


def _lane(name: str, counts: dict[str, int]) -> Lane:
    return Lane(
        name,
        lacking=counts["lacking"],
        waiting=counts["lacking"] - counts["begun"],
        in_flight=counts["begun"] - counts["ended"],
        copied=counts["copied"],
        failed=counts["ended"] - counts["copied"],
    )
