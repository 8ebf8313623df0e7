"""What workers said of a duty lately: warnings, errors, what was done of note, and what a round came to if that is new.

A worker has one duty at a time. It keeps the lines of the round in memory, and writes them down in one insert: while it
waits for something long, each time that it renews its lease, and at the end. Of a duty the last `KEPT` lines stay, so
the table is bounded wherever and however many the workers are. Exceptions' traces are in the worker's own log only.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import DatabaseError

from core.redaction import without_secrets
from db import clock
from deployment.known_secrets import known_secrets
from jobs.models import Duty, JobLine

KEPT = 200
WAITING = 50
"""So many lines wait to be written; of a round that says more in between, the last ones."""
LONGEST = 1000
LOGGERS = ("lakemirror", "mirrors", "mirroring", "installations", "notifications", "jobs", "spark_jobs", "adapters")
log = logging.getLogger("joblog")


class JobLogHandler(logging.Handler):
    """Takes what is logged in the course of a round, by whichever thread."""

    def __init__(self, duty: Duty, worker: str) -> None:
        super().__init__(logging.INFO)
        self.duty, self.worker, self.before = duty, worker, duty.outcome
        self._lines: list[tuple[float, str, str]] = []
        self._guard = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line; of an exception that nobody expected what it was, and no more."""
        kind = record.exc_info[0] if record.exc_info else None
        why = f" ({kind.__name__})" if kind else ""
        self._keep(record.levelname, f"{record.getMessage()}{why}")

    def outcome(self, summary: str, *, failed: bool) -> None:
        """What the round came to, if that is news; of what failed there is a line already."""
        if summary and not failed and summary != self.before:
            self._keep("INFO", summary)

    def _keep(self, level: str, text: str) -> None:
        with self._guard:
            self._lines = [*self._lines, (time.monotonic(), level, text)][-WAITING:]

    def write(self) -> None:
        """Write down what was kept. What the database doesn't take now waits for the next time, and fails no round."""
        with self._guard:
            lines, self._lines = self._lines, []
        if not lines:
            return
        try:
            self._store(lines)
        except DatabaseError as error:
            log.warning("what was said of %s can't be kept now: %s", self.duty, type(error).__name__)
            with self._guard:
                self._lines = [*lines, *self._lines][-WAITING:]

    def _store(self, lines: list[tuple[float, str, str]]) -> None:
        if not Duty.objects.filter(pk=self.duty.pk).exists():
            return  # its mirror is gone
        now, ticks, secrets = clock.now(), time.monotonic(), known_secrets()
        rows = [
            JobLine(
                duty=self.duty,
                at=now - timedelta(seconds=ticks - then),
                level=level[:16],
                worker=self.worker,
                text=without_secrets(text.replace("\0", ""), secrets)[:LONGEST],
            )
            for then, level, text in lines
        ]
        JobLine.objects.bulk_create(rows)
        _forget_old(self.duty)


def _forget_old(duty: Duty) -> None:
    lines = JobLine.objects.filter(duty=duty)
    oldest = lines.order_by("-pk").values_list("pk", flat=True)[KEPT : KEPT + 1].first()
    if oldest is not None:
        lines.filter(pk__lte=oldest).delete()


@contextmanager
def capture_log(duty: Duty, worker: str) -> Iterator[JobLogHandler]:
    """Listen to what is logged, and write it down at the end."""
    handler = JobLogHandler(duty, worker)
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield handler
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
        handler.write()
