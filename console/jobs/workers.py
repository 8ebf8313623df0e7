"""The workers as pages and API tell them: by their own reports, and those of an older version by their leases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max

from jobs.lease import LEASE_SECONDS
from jobs.models import Worker
from jobs.querysets import DutyQuerySet
from jobs.workers import is_lost
from web.serializers import rfc3339

WORKERS = 200
SPARK_STARTS = timedelta(minutes=2)
"""Where a worker and its Spark are started together, so long Spark may take longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReading:
    """A worker. `row`: what it says itself, None for one of an older version; `tasks`: how many it runs now."""

    name: str
    queue: str
    row: Worker | None
    tasks: int
    heard_at: datetime
    lost: bool
    spark_starting: bool = False
    """Whether its Spark can't be reached, and may still be starting as it was itself just now."""

    @property
    def spark_trouble(self) -> str:
        """Why it does not reach its Spark though that should have started, or ""."""
        return self.row.spark_trouble if self.row and not self.lost and not self.spark_starting else ""

    @property
    def place(self) -> str:
        """Machine and process, as operators look for them."""
        return ":".join(self.name.split(":")[:2])


def worker_readings(rows: DutyQuerySet, now: datetime) -> Sequence[WorkerReading]:
    """Every worker that was heard of in the last day, those that stopped answering last; `rows`: duties to count."""
    held = rows.filter(until__gt=now).order_by("holder").values_list("holder", "queue")
    leases = {name: (queue, number, last) for name, queue, number, last in held.annotate(n=Count("pk"), u=Max("until"))}
    reported = list(Worker.objects.order_by("queue", "started_at", "pk")[:WORKERS])
    known = {worker.name for worker in reported}
    readings = [_reported(worker, leases, now) for worker in reported]
    readings += [_by_lease(name, *lease) for name, lease in sorted(leases.items()) if name not in known]
    return sorted(readings, key=lambda reading: reading.lost)


def _reported(worker: Worker, leases: dict[str, tuple[str, int, datetime]], now: datetime) -> WorkerReading:
    _, tasks, until = leases.get(worker.name, ("", 0, None))
    heard = max(worker.heard_at, _renewed(until)) if until else worker.heard_at
    return WorkerReading(
        name=worker.name,
        queue=worker.queue,
        row=worker,
        tasks=tasks,
        heard_at=heard,
        lost=is_lost(worker, now),
        spark_starting=bool(worker.spark_trouble) and now - worker.started_at < SPARK_STARTS,
    )


def _by_lease(name: str, queue: str, tasks: int, until: datetime) -> WorkerReading:
    return WorkerReading(name=name, queue=queue, row=None, tasks=tasks, heard_at=_renewed(until), lost=False)


def _renewed(until: datetime) -> datetime:
    return until - timedelta(seconds=LEASE_SECONDS)


def worker_json(reading: WorkerReading) -> dict[str, Any]:
    """A worker."""
    row = reading.row
    return {
        "name": reading.name,
        "queue": reading.queue,
        "state": "lost" if reading.lost else "alive",
        "duties": reading.tasks,
        "heard_at": rfc3339(reading.heard_at),
        "host": row and row.host,
        "pid": row and row.pid,
        "slots": row and row.slots,
        "load": row and round(row.load, 2),
        "cores": row and row.cores,
        "started_at": rfc3339(row.started_at) if row else None,
        "spark": (row and row.spark) or None,
        "spark_trouble": (row and row.spark_trouble) or None,
    }


def alive_by_queue(readings: Sequence[WorkerReading]) -> dict[str, int]:
    """How many answer, by queue."""
    queues = [reading.queue for reading in readings if not reading.lost]
    return {queue: queues.count(queue) for queue in set(queues)}
