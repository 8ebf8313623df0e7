"""What LakeMirror copies for a mirror now, how fast, and how much it has copied."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.bringing import ObjectReplication
from core.text.eta import per_second
from mirrors.models import Mirror
from mirrors.status.runs import is_held


@dataclass(frozen=True, slots=True)
class Copying:
    """`lacking` objects were found missing by the run at work, of which `copied` are here; None: none is at work.
    `rate` in bytes per second."""

    paused: bool
    total: int
    total_bytes: int
    lacking: int | None = None
    copied: int = 0
    rate: float | None = None


def copying_of(mirror: Mirror, now: datetime) -> Copying | None:
    """Of a mirror whose objects LakeMirror copies; None where the stores do."""
    if mirror.object_replication != ObjectReplication.MANAGED:
        return None
    totals = Copying(mirror.copying_paused, mirror.copied, mirror.copied_bytes)
    run = mirror.runs.filter(ended_at=None, lacking__gt=0).first()
    if run is None or not is_held(mirror, now):
        return totals
    rate = per_second(run.copied_bytes, run.started_at, now)
    return Copying(totals.paused, totals.total, totals.total_bytes, run.lacking, run.copied, rate)
