"""Recurring work: how it is claimed, done, handed on and woken up.

A message only says "look at this duty"; the row decides, by the database's clock, who does the work.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models.functions import Now
from django_q.tasks import async_task

from core.errors import Fenced, LakeMirrorError, Stopped
from deployment import config
from jobs import kinds
from jobs import lease as leases
from jobs.deployments import working_for
from jobs.lease import HOLDER, DutyOutcome, Handler, Lease
from jobs.log import capture_log
from jobs.models import Duty

log = logging.getLogger("lakemirror.duties")

OVERDUE_SECONDS = 60.0
"""A duty that nobody has taken up for so long is for any deployment that needs it."""


def run(duty_id: int, holder: str = HOLDER) -> str:
    """Claim a duty and do its work; says in words what came of it."""
    duty = Duty.objects.filter(pk=duty_id).first()
    if duty is None:
        return "this task no longer exists"
    kind = kinds.kind_of(duty)
    if kind is None:
        return f"the duty '{duty.kind}' belongs to a newer version"
    if reason := kind.beyond_us(duty):
        return reason
    interval = kind.interval()
    if not Duty.objects.claim(duty_id, holder=holder, lease=leases.LEASE_SECONDS, interval=interval):
        return "not due, or run by another worker"
    before = duty.holder
    duty.refresh_from_db()
    with capture_log(duty, holder) as job_log:
        if before:
            log.warning("%s was taken over from worker %s, which stopped answering while it ran", duty, before)
        lease = Lease(duty, holder, duty.attempt, job_log=job_log)
        outcome, failures = _work(lease, kind.handler, interval)
        _release(lease, outcome, failures, interval)
        job_log.outcome(outcome.summary, failed=failures > 0 or not outcome.whole)
    return outcome.summary


def _work(lease: Lease, handler: Handler, interval: float) -> tuple[DutyOutcome, int]:
    failures = lease.duty.failures + 1
    most = min(interval, config.current().validator.cooldown_on_error.total_seconds())
    soon = min(most, 0.5 * 2.0 ** min(failures, 10))
    try:
        return handler(lease), 0
    except Fenced as error:
        log.warning("%s: %s", lease.duty, error)
        return DutyOutcome(str(error)), failures
    except Stopped as error:
        log.warning("%s: %s", lease.duty, error)
        return DutyOutcome(str(error), most, whole=False), lease.duty.failures
    except LakeMirrorError as error:
        log.warning("%s (attempt %d in a row): %s", lease.duty, failures, error)
        return DutyOutcome(str(error), soon if error.retryable else most, refusal=error.permanent), failures
    except Exception:
        log.exception("%s failed for a reason that is our own fault", lease.duty)
        return DutyOutcome("internal error: see the log of the worker", soon), failures


def _release(lease: Lease, outcome: DutyOutcome, failures: int, interval: float) -> None:
    next_in = interval if outcome.next_in is None else min(outcome.next_in, interval)
    success = {"succeeded_at": lease.duty.started_at} if outcome.whole and not failures else {}
    Duty.objects.release(
        lease.duty.pk,
        holder=lease.holder,
        attempt=lease.attempt,
        next_in=next_in,
        failures=failures,
        outcome=outcome.summary[:2000],
        refusal=outcome.refusal,
        **success,
    )
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
    served = home.region if region in home.served else _who_serves(region)
    return f"{served}-spark" if kinds.is_heavy(kind) else served


def _who_serves(region: str) -> str:
    """The deployment that announces itself as serving a region; else the one that would be named for it."""
    deployment = working_for(region)
    return deployment.region if deployment else region


def repository_changed(region: str, repository: str) -> bool:
    """An installation says that a repository of its own has moved: wake whom it concerns; false when it is nobody."""
    number = 0
    for kind in kinds.registered():
        for subject in kind.on_repository_event(region, repository):
            wake(kind.name, subject)
            number += 1
    return number > 0


def take_over() -> int:
    """Move long overdue duties that our regions need from queues of others into our own; gives how many.

    A source with mirrors in several regions is looked at by one deployment for all of them: when that one is gone,
    another one goes on. The same for mirrors of a region that another deployment served before.
    """
    home, number = config.current(), 0
    for kind in kinds.registered():
        queue = queue_name(kind.name, home.region)
        needed = Duty.objects.filter(kind=kind.name, subject__in=kind.needed(list(home.served)))
        abandoned = needed.abandoned(OVERDUE_SECONDS).exclude(queue=queue)
        number += abandoned.update(queue=queue, woken_at=None)
    return number
