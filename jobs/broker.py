"""The queue in the database with a quicker ear: a wake-up is heard within some milliseconds of its commit.

Asking for messages is a query, which is why django-q asks only now and then. SQLite tells for next to nothing whether
another connection has committed anything since it was last asked, so there the question can come far more often.

Times are the database's: what a process with a wrong clock sends is heard at once, and so it hears what others send.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from django.db import connections
from django.db.models.functions import Now
from django_q.brokers.orm import ORM
from django_q.conf import Conf

LISTEN_SECONDS = 0.02
SURE_SECONDS = 0.5
"""However quiet it is, ask that often: a connection that was opened anew counts from the beginning."""


class AttentiveBroker(ORM):
    """django-q's ORM broker that asks when something was committed, and goes by the database's clock."""

    _quiet: int | None = None
    _until = 0.0

    def enqueue(self, task: str) -> int:
        """Leave a message in the queue; gives its key."""
        pk: int = self.get_connection().create(key=self.list_key or Conf.CLUSTER_NAME, payload=task, lock=Now()).pk
        return pk

    def dequeue(self) -> list[tuple[Any, str]] | None:
        """Messages of this queue, or None after a short wait."""
        commits = _commits_of_others()
        if commits is not None and commits == self._quiet and time.monotonic() < self._until:
            time.sleep(LISTEN_SECONDS)
            return None
        messages = self._take()
        if not messages:
            time.sleep(Conf.POLL)
        self._quiet, self._until = (None if messages else commits), time.monotonic() + SURE_SECONDS
        return messages

    def _take(self) -> list[tuple[Any, str]]:
        """Messages that nobody has, each taken by one conditional UPDATE."""
        queue = self.get_connection().filter(lock__lte=Now())
        waiting = queue.filter(key=self.list_key).order_by("pk").values_list("pk", "payload")[: Conf.BULK]
        until = Now() + timedelta(seconds=Conf.RETRY)
        return [(pk, payload) for pk, payload in waiting if queue.filter(pk=pk).update(lock=until)]

    def queue_size(self) -> int:
        """How many messages wait."""
        return int(self.get_connection().filter(key=self.list_key, lock__lte=Now()).count())

    def lock_size(self) -> int:
        """How many somebody has taken."""
        return int(self.get_connection().filter(key=self.list_key, lock__gt=Now()).count())


def _commits_of_others() -> int | None:
    """A number that changes with each commit of another connection; None where the database has no such thing."""
    connection = connections[Conf.ORM]
    if connection.vendor != "sqlite":
        return None
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA data_version")
        version: int = cursor.fetchone()[0]
        return version
