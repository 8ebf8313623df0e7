"""Leases and wake-ups: how recurring work is claimed, kept, fenced and handed on.

A message only says "look at this duty"; the row decides, by the database's clock, who does the work.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from django.db import DatabaseError, connection, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django_q.tasks import async_task

from core.errors import Fenced, LakeMirrorError, Stopped
from deployment import config
from jobs.log import Said, heard
from jobs.models import Duty

log = logging.getLogger("lakemirror.duties")

LEASE_SECONDS = 60.0
OVERDUE_SECONDS = 60.0
"""A duty that nobody has taken up for so long is for any deployment that needs it."""
HOLDER = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"[:64]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a duty did, in words; seconds until the next look, if sooner than its interval; whether it did all."""

    summary: str
    next_in: float | None = None
    whole: bool = True


@dataclass(slots=True)
class Lease:
    """The right to work on a duty until `LEASE_SECONDS` after the last renewal."""

    duty: Duty
    holder: str
    attempt: int
    renewed: float = field(default_factory=time.monotonic)
    said: Said | None = None

    def beat(self) -> None:
        """Renew when a third of the lease has passed. Raises Fenced when it was lost."""
        if time.monotonic() - self.renewed < LEASE_SECONDS / 3:
            return
        if not Duty.objects.renew(self.duty.pk, holder=self.holder, attempt=self.attempt, lease=LEASE_SECONDS):
            raise Fenced(f"the lease on '{self.duty}' was lost")
        self.renewed = time.monotonic()

    def fence(self, margin: float) -> None:
        """Make sure that the lease is ours for `margin` more seconds, longer than the call that follows can take."""
        self.beat()
        if not Duty.objects.held(self.duty.pk, holder=self.holder, attempt=self.attempt, margin=margin):
            raise Fenced(f"the lease on '{self.duty}' was lost or ends too soon")

    def hold(self) -> None:
        """Inside of a transaction: nobody can take the duty over before it ends. Raises Fenced when somebody has."""
        self.beat()
        if not Duty.objects.lock(self.duty.pk, holder=self.holder, attempt=self.attempt):
            raise Fenced(f"the lease on '{self.duty}' was lost")

    @contextmanager
    def kept(self) -> Iterator[None]:
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
                self._beat_through()
        except Fenced as error:
            log.warning("%s", error)
        finally:
            connection.close()

    def _beat_through(self) -> None:
        """Renew; what the database does not answer now is tried again at the next beat."""
        try:
            self.beat()
            if self.said is not None:
                self.said.write()
        except DatabaseError as error:
            log.warning("the lease on '%s' could not be renewed, trying again: %s", self.duty, error)
            connection.close()


Handler = Callable[[Lease], Outcome]


@dataclass(frozen=True, slots=True)
class Guest:
    """A kind of duty that another app brings. Its subjects are below zero, so that nobody takes them for a mirror's:
    no older version either. `interval` in seconds; `needed`: subjects that these regions' deployment works for;
    `concerned`: those for which a change of a region's repository is news; `heavy`: it goes to the queue of the Spark
    jobs."""

    kind: str
    handler: Handler
    interval: Callable[[], float]
    needed: Callable[[list[str]], list[int]]
    concerned: Callable[[str, str], list[int]]
    heavy: bool = False


@dataclass(frozen=True, slots=True)
class Home:
    """What the app of our own kinds of duties knows of them: why a duty is left to a newer version, or "", and which
    duties the mirrors of these regions need."""

    strange: Callable[[Duty], str]
    needed: Callable[[list[str]], Q]


_guests: dict[str, Guest] = {}
_homes: list[Home] = []


def register(guest: Guest) -> None:
    """Make another app's duties known; each process does so when the app is ready."""
    _guests[guest.kind] = guest


def register_home(home: Home) -> None:
    """Make our own kinds' app known; each process does so when that is ready."""
    _homes[:] = [home]


def guests() -> list[Guest]:
    """The kinds that other apps have brought."""
    return list(_guests.values())


def kinds() -> list[str]:
    """Every kind of duty that this version knows."""
    return [*Duty.Kind.values, *_guests]


def run(duty_id: int, handlers: dict[str, tuple[Handler, float]], holder: str = HOLDER) -> str:
    """Claim a duty and do its work; says in words what came of it. `handlers`: kind to (function, interval seconds)."""
    duty = Duty.objects.filter(pk=duty_id).first()
    if duty is None:
        return "no such duty any more"
    if reason := _beyond_us(duty, handlers):
        return reason
    handler, interval = handlers[duty.kind]
    if not Duty.objects.claim(duty_id, holder=holder, lease=LEASE_SECONDS, interval=interval):
        return "not due, or in other hands"
    duty.refresh_from_db()
    with heard(duty, holder) as said:
        lease = Lease(duty, holder, duty.attempt, said=said)
        outcome, failures = _work(lease, handler, interval)
        _release(lease, outcome, failures, interval)
        said.outcome(outcome.summary, failed=failures > 0 or not outcome.whole)
    return outcome.summary


def _beyond_us(duty: Duty, handlers: Collection[str]) -> str:
    """Why a duty is left to a newer version; "" when we understand it."""
    if duty.kind not in handlers:
        return f"the duty '{duty.kind}' is a newer version's"
    return next((reason for home in _homes if (reason := home.strange(duty))), "")


def _work(lease: Lease, handler: Handler, interval: float) -> tuple[Outcome, int]:
    failures = lease.duty.failures + 1
    most = min(interval, config.current().validator.cooldown_on_error.total_seconds())
    soon = min(most, 0.5 * 2.0 ** min(failures, 10))
    try:
        return handler(lease), 0
    except Fenced as error:
        log.warning("%s: %s", lease.duty, error)
        return Outcome(str(error)), failures
    except Stopped as error:
        log.warning("%s: %s", lease.duty, error)
        return Outcome(str(error), most, whole=False), lease.duty.failures
    except LakeMirrorError as error:
        log.warning("%s (attempt %d in a row): %s", lease.duty, failures, error)
        return Outcome(str(error), soon if error.retryable else most), failures
    except Exception:
        log.exception("%s failed for a reason that is our own fault", lease.duty)
        return Outcome("internal error: see the log of the worker", soon), failures


def _release(lease: Lease, outcome: Outcome, failures: int, interval: float) -> None:
    next_in = interval if outcome.next_in is None else min(outcome.next_in, interval)
    released = Duty.objects.release(
        lease.duty.pk,
        holder=lease.holder,
        attempt=lease.attempt,
        next_in=next_in,
        failures=failures,
        outcome=outcome.summary[:2000],
    )
    if released and outcome.whole and not failures:
        Duty.objects.filter(pk=lease.duty.pk).update(succeeded_at=lease.duty.started_at)
    send(Duty.objects.filter(pk=lease.duty.pk).to_send())


def wake(kind: str, subject: int) -> None:
    """Make a duty due now and send its wake-up once the transaction is through."""
    transaction.on_commit(lambda: send(Duty.objects.wake(kind=kind, subject=subject)))


def send(messages: list[tuple[int, str]]) -> None:
    """Put wake-up messages into their queues."""
    for duty_id, queue in messages:
        async_task("mirrors.tasks.run_duty", duty_id, q_options={"cluster": queue, "save": False})


def ensure(kind: str, subject: int, region: str) -> None:
    """A duty exists; a new one is due at once, and belongs to the queue of this region's deployment."""
    defaults = {"queue": queue_name(kind, region), "due_at": Now()}
    Duty.objects.get_or_create(kind=kind, subject=subject, defaults=defaults)


def queue_name(kind: str, region: str) -> str:
    """The queue of a kind of duty for a destination region: our own pair for all regions that we serve."""
    home = config.current()
    served = home.region if region in home.served else region
    heavy = kind == Duty.Kind.VALIDATE or (kind in _guests and _guests[kind].heavy)
    return f"{served}-spark" if heavy else served


def take_over() -> int:
    """Move long overdue duties that mirrors of ours need from queues of others into our own; gives how many.

    A source with mirrors in several regions is looked at by one deployment for all of them: when that one is gone,
    another one goes on. The same for mirrors of a region that another deployment served before.
    """
    home = config.current()
    needed = Q(pk__in=[])
    for own in _homes:
        needed |= own.needed(list(home.served))
    for guest in guests():
        needed |= Q(kind=guest.kind, subject__in=guest.needed(list(home.served)))
    number = 0
    for kind in kinds():
        queue = queue_name(kind, home.region)
        number += (
            Duty.objects.filter(needed, kind=kind)
            .abandoned(OVERDUE_SECONDS)
            .exclude(queue=queue)
            .update(queue=queue, woken_at=None)
        )
    return number
