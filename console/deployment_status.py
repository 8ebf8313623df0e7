"""What concerns a whole deployment, as far as somebody may see it: queues, workers, outages, deployments that differ.

Who may see every mirror may see all of it. Who may see some is told of the queues that their jobs are in, as a whole,
of the workers of these, and of outages in regions where their mirrors have a side.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from console.jobs.listing import duties_of, others_of
from console.jobs.workers import WorkerReading, worker_readings
from jobs.deployments import disagreements
from jobs.queue_status import QueueReading, queue_readings
from mirrors.models.querysets import MirrorQuerySet
from mirrors.services.rights import sees_every_mirror
from mirrors.status.mirror import MirrorStatus
from mirrors.status.root_causes import RootCause, root_causes


def queues_seen_by(user: Any, visible: MirrorQuerySet, now: datetime) -> list[QueueReading]:
    """Every queue, or those that jobs of theirs are in."""
    readings = queue_readings(now)
    if sees_every_mirror(user):
        return readings
    own = duties_of(visible, others_of(user)).order_by().values_list("queue", flat=True)
    names = set(own.distinct())
    return [reading for reading in readings if reading.name in names]


def workers_seen_by(
    user: Any, visible: MirrorQuerySet, queues: Sequence[QueueReading], now: datetime
) -> list[WorkerReading]:
    """The workers of these queues, which are those that they see, with how many of their tasks each runs."""
    readings = worker_readings(duties_of(visible, others_of(user)), now)
    names = {queue.name for queue in queues}
    all_seen = sees_every_mirror(user)
    return [reading for reading in readings if all_seen or reading.queue in names]


def outages_seen_by(user: Any, readings: Sequence[MirrorStatus], now: datetime) -> list[RootCause]:
    """Every outage of now, or those on which mirrors of theirs depend; `readings` are of all that they see."""
    causes, all_seen = root_causes(readings, now), sees_every_mirror(user)
    return [cause for cause in causes if all_seen or cause.mirrors]


def disagreements_seen_by(user: Any) -> list[str]:
    """Where deployments don't belong together; nothing for who sees some mirrors only."""
    return disagreements() if sees_every_mirror(user) else []
