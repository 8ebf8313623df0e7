"""The right to work on a duty: kept up while its work goes on, asked for before whatever must not be done twice."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import DatabaseError, connection, transaction

from core.errors import Fenced
from jobs.log import JobLogHandler
from jobs.models import Duty

log = logging.getLogger("lakemirror.duties")

LEASE_SECONDS = 60.0
HOLDER = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"[:64]


@dataclass(frozen=True, slots=True)
class DutyOutcome:
    """What a duty did, in words; seconds until the next look, if sooner than its interval; whether it did all.
    `refusal`: why it failed, where no later try helps by itself."""

    summary: str
    next_in: float | None = None
    whole: bool = True
    refusal: str = ""


@dataclass(slots=True)
class Lease:
    """The right to work on a duty until `LEASE_SECONDS` after the last renewal."""

    duty: Duty
    holder: str
    attempt: int
    renewed: float = field(default_factory=time.monotonic)
    job_log: JobLogHandler | None = None

    def renew(self) -> None:
        """Renew when a third of the lease has passed. Raises Fenced when it was lost."""
        if time.monotonic() - self.renewed < LEASE_SECONDS / 3:
            return
        if not Duty.objects.renew(self.duty.pk, holder=self.holder, attempt=self.attempt, lease=LEASE_SECONDS):
            raise Fenced(f"the lease on '{self.duty}' was lost")
        self.renewed = time.monotonic()

    def fence(self, margin: float) -> None:
        """Make sure that the lease is ours for `margin` more seconds, longer than the call that follows can take."""
        self.renew()
        if not Duty.objects.held(self.duty.pk, holder=self.holder, attempt=self.attempt, margin=margin):
            raise Fenced(f"the lease on '{self.duty}' was lost or ends too soon")

    def lock(self) -> None:
        """Inside of a transaction: nobody can take the duty over before it ends. Raises Fenced when somebody has."""
        self.renew()
        if not Duty.objects.lock(self.duty.pk, holder=self.holder, attempt=self.attempt):
            raise Fenced(f"the lease on '{self.duty}' was lost")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction before whose end nobody can take the duty over. Raises Fenced when somebody has."""
        with transaction.atomic():
            self.lock()
            yield

    @contextmanager
    def keep_alive(self) -> Iterator[None]:
        """Renew from a thread while the caller waits for something long. The caller fences before it writes."""
        done = threading.Event()
        thread = threading.Thread(target=self._keep, args=(done,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _keep(self, done: threading.Event) -> None:
        try:
            while not done.wait(LEASE_SECONDS / 8):
                self._renew_through()
        except Fenced as error:
            log.warning("%s", error)
        finally:
            connection.close()

    def _renew_through(self) -> None:
        """Renew; what the database does not answer now is tried again at the next turn."""
        try:
            self.renew()
            if self.job_log is not None:
                self.job_log.write()
        except DatabaseError as error:
            log.warning("the lease on '%s' could not be renewed, trying again: %s", self.duty, error)
            connection.close()


Handler = Callable[[Lease], DutyOutcome]
"""What does the work of a duty."""
