"""django-q's cluster of workers, once the tables are there; it ends when it is told to, however often and whenever."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django_q.cluster import Cluster

from db import tables
from jobs.queue_process import LockFreeEvent

LOOK_SECONDS = 1.0


class Command(BaseCommand):
    help = "Do the duties of a queue, `Q_CLUSTER_NAME` or the region's own, until stopped."

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = ToldCluster()
        if not tables.watch.wait(cluster.told.wait):
            return
        cluster.start()
        while not cluster.told.wait(LOOK_SECONDS):
            if not cluster.sentinel.is_alive():
                raise CommandError(f"the workers' guard has ended by itself, status {cluster.sentinel.exitcode}")
        cluster.stop()


class ToldCluster(Cluster):  # type: ignore[misc]
    """What a signal says is only noted.

    django-q's own handler stops everything in the middle of whatever the process was doing. `told`: a signal has come.
    """

    def __init__(self) -> None:
        self.told = LockFreeEvent()
        super().__init__()

    def sig_handler(self, signum: int, frame: object) -> None:
        """Note it."""
        self.told.set()
