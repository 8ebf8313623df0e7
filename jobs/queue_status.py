"""Is anybody at work? What the tables tell of queues and of those who take duties from them.

Whether a queue is served is told by its duties: by when one was last taken up, kept or ended. That a process lives
(`jobs/workers.py`) does not tell that it works. What django-q knows of its processes stays on their machine, so it is
not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max, Min, Q
from django_q.models import OrmQ

from core.mirroring.rpo import in_words
from deployment import config, preparation
from jobs.lease import LEASE_SECONDS
from jobs.models import Duty

SILENT_AFTER = timedelta(seconds=60)
LONG_OVERDUE = timedelta(minutes=5)
FIRST_START = timedelta(minutes=5)
"""So long nobody has to worry that a queue had no worker yet."""
SETTLING = timedelta(minutes=2)
"""So long after everything was installed its worker may still be starting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReading:
    """A queue. `beat`: when one of its workers was last heard of; `messages` wait, `overdue` duties too. `starting`:
    nobody serves it, and its worker is still being started."""

    name: str
    beat: datetime | None
    holders: int
    messages: int
    due: int
    oldest_due: datetime | None
    woken_at: datetime | None
    as_of: datetime
    starting: bool = False

    @property
    def waited(self) -> timedelta:
        """For how long the oldest duty that is due has waited for somebody."""
        return self.as_of - self.oldest_due if self.oldest_due else timedelta()

    @property
    def heard(self) -> bool:
        """Whether a worker was heard of lately."""
        return self.beat is not None and self.as_of - self.beat <= SILENT_AFTER

    @property
    def unserved(self) -> bool:
        """Whether there is work, and nobody was heard of who would do it."""
        return not self.heard and self.waited > SILENT_AFTER

    @property
    def silent(self) -> bool:
        """Whether that is so though its worker should have started long ago."""
        return self.unserved and not self.starting

    @property
    def trouble(self) -> str:
        """What is wrong and what to look at, or ""."""
        if self.starting:
            return ""
        if self.silent:
            woken = self.woken_at is not None and self.as_of - self.woken_at <= SILENT_AFTER
            whom = "its worker" if woken else "the controller, which sends wake-ups, and its worker"
            since = f"for {in_words((self.as_of - self.beat).total_seconds())}" if self.beat else "yet"
            check = f"Check that {whom} {'is' if woken else 'are'} running."
            return f"No worker has served the queue {self.name} {since}. {check}"
        if self.waited > LONG_OVERDUE:
            late = in_words(self.waited.total_seconds())
            return f"A task in the queue {self.name} has waited for {late}: its workers are busy with other tasks."
        return ""


def queue_readings(now: datetime) -> list[QueueReading]:
    """Every queue that has duties, by name."""
    sent = OrmQ.objects.filter(lock__lte=now).order_by().values("key").annotate(number=Count("pk"))
    messages = {row["key"]: row["number"] for row in sent}
    held = Q(until__gt=now)
    waiting = Q(due_at__lte=now) & (Q(until=None) | Q(until__lte=now))
    rows = (
        Duty.objects.order_by("queue")
        .values("queue")
        .annotate(
            started=Max("started_at"),
            ended=Max("ended_at"),
            last_until=Max("until"),
            holders=Count("holder", filter=held, distinct=True),
            due=Count("pk", filter=waiting),
            oldest_due=Min("due_at", filter=waiting),
            woken=Max("woken_at"),
        )
    )
    return [_queue(row, messages.get(row["queue"], 0), now) for row in rows]


def _queue(row: dict[str, Any], messages: int, now: datetime) -> QueueReading:
    renewed = row["last_until"] - timedelta(seconds=LEASE_SECONDS) if row["last_until"] else None
    beat = max((at for at in (row["started"], row["ended"], renewed) if at), default=None)
    unheard = beat is None or now - beat > SILENT_AFTER
    return QueueReading(
        name=row["queue"],
        beat=beat,
        starting=unheard and is_starting(row["queue"], beat, row["oldest_due"], now),
        holders=row["holders"],
        messages=messages,
        due=row["due"],
        oldest_due=row["oldest_due"],
        woken_at=row["woken"],
        as_of=now,
    )


def is_starting(queue: str, beat: datetime | None, due: datetime | None, now: datetime) -> bool:
    """Whether the worker of a queue is still being started: by `scripts/run`, which says so, or because nobody ever
    served it and its first work was due just now."""
    home = config.current()
    names = {home.worker_queue: "workers", home.spark_queue: "spark"}
    stage = preparation.status().stage(names.get(queue, ""))
    if stage is not None and stage.state != "failed":
        return stage.state != "ready" or now.timestamp() - stage.since < SETTLING.total_seconds()
    return stage is None and beat is None and due is not None and now - due <= FIRST_START


def troubles(queues: Iterable[QueueReading]) -> Sequence[str]:
    """What is wrong with them."""
    return [queue.trouble for queue in queues if queue.trouble]
