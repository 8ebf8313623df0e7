"""django-q's cluster of workers, once the tables are there; it ends when it is told to, however often and whenever."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, close_old_connections
from django_q.cluster import Cluster
from django_q.conf import Conf

from db import tables
from deployment import config
from jobs import workers
from jobs.queue_process import LockFreeEvent

log = logging.getLogger("lakemirror.workers")

LOOK_SECONDS = 1.0


class Command(BaseCommand):
    help = "Run the workers of a queue, `Q_CLUSTER_NAME` or the region's own. Runs until stopped."

    def handle(self, *args: Any, **options: Any) -> None:
        cluster = ToldCluster()
        if not tables.watch.wait(cluster.told.wait):
            return
        cluster.start()
        reporter = Reporter()
        while not cluster.told.wait(LOOK_SECONDS):
            reporter.report_if_due()
            if not cluster.sentinel.is_alive():
                raise CommandError(f"the workers' guard has ended by itself, status {cluster.sentinel.exitcode}")
        cluster.stop()
        reporter.leave()


class Reporter:
    """Says every few seconds that this cluster is here; what the database doesn't take now is said the next time."""

    def __init__(self) -> None:
        self.queue = Conf.CLUSTER_NAME
        heavy = self.queue == config.current().spark_queue
        self.spark = (os.environ.get("SPARK_REMOTE") or workers.LOCAL_SPARK) if heavy else ""
        self.next_at = 0.0

    def report_if_due(self) -> None:
        """Once every `REPORT_SECONDS`."""
        if time.monotonic() < self.next_at:
            return
        self.next_at = time.monotonic() + workers.REPORT_SECONDS
        self._try(lambda: workers.report(queue=self.queue, spark=self.spark))

    def leave(self) -> None:
        """At the end."""
        self._try(workers.leave)

    def _try(self, act: Callable[[], None]) -> None:
        try:
            close_old_connections()
            act()
        except DatabaseError as error:
            log.warning("the database did not take this worker's report, trying again: %s", error)


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
