"""The queue in the database with a quicker ear: a wake-up is heard within some milliseconds of its commit.

Asking for messages is a query, which is why django-q asks only now and then. SQLite tells for next to nothing whether
another connection has committed anything since it was last asked, so there the question can come far more often.
"""

from __future__ import annotations

import time
from typing import Any

from django.db import connections
from django_q.brokers.orm import ORM
from django_q.conf import Conf

LISTEN_SECONDS = 0.02
SURE_SECONDS = 0.5
"""However quiet it is, ask that often: a connection that was opened anew counts from the beginning."""


class AttentiveBroker(ORM):
    """django-q's ORM broker that asks when something was committed."""

    _quiet: int | None = None
    _until = 0.0

    def dequeue(self) -> list[tuple[Any, str]] | None:
        """Messages of this queue, or None after a short wait."""
        commits = _commits_of_others()
        if commits is not None and commits == self._quiet and time.monotonic() < self._until:
            time.sleep(LISTEN_SECONDS)
            return None
        found: list[tuple[Any, str]] | None = super().dequeue()
        self._quiet, self._until = (None if found else commits), time.monotonic() + SURE_SECONDS
        return found


def _commits_of_others() -> int | None:
    """A number that changes with each commit of another connection; None where the database has no such thing."""
    connection = connections[Conf.ORM]
    if connection.vendor != "sqlite":
        return None
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA data_version")
        version: int = cursor.fetchone()[0]
        return version
