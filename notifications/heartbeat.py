"""Who watches the watcher: a URL of the user's is asked for every minute while all that notifications need is at work.

A service that waits for these (healthchecks.io, Cronitor, Opsgenie) tells when they stop. One duty for each deployment
that has a URL, by its row of `Deployment`: another one may not say that this one is alive.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from adapters import webhooks
from core.errors import LakeMirrorError
from db import clock
from deployment import config
from jobs import duties
from jobs.deployments import SILENT_AFTER, own
from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty
from jobs.queue_status import queue_readings
from notifications import rounds

DUTY = "heartbeat"
SECONDS = 60.0


def look_round() -> None:
    """By each controller: the duty is there, where a URL is configured."""
    row = own()
    if row is not None and config.current().notifications.heartbeat_url:
        duties.ensure(DUTY, row.pk, config.current().region)


def needed(regions: list[str]) -> list[int]:
    """This deployment's own row, and no other."""
    row = own()
    return [row.pk] if row is not None else []


def beat(lease: Lease) -> DutyOutcome:
    """Ask for the URL, unless something is not at work. That it is not answered is noted and tried again."""
    row, url = own(), config.current().notifications.heartbeat_url.reveal()
    if row is None or row.pk != lease.duty.subject or not url:
        Duty.objects.filter(pk=lease.duty.pk).delete()
        return DutyOutcome("no heartbeat is configured for this deployment")
    now = clock.now()
    if missing := "; ".join(_missing(row.seen_at, now)):
        return DutyOutcome(f"not sent: {missing}", whole=False)
    try:
        answer = webhooks.get(url, private=config.current().notifications.private_addresses)
    except LakeMirrorError as error:
        return DutyOutcome(f"not accepted: {error}", whole=False)
    return DutyOutcome(f"{'sent' if answer.taken else 'not accepted'}: {answer.status}", whole=answer.taken)


def _missing(controller_seen_at: datetime, now: datetime) -> Iterator[str]:
    """What is not at work of what notifications need; that a worker is, this duty shows by itself."""
    home = config.current()
    if now - controller_seen_at > SILENT_AFTER:
        yield "the controller has not reported for a minute"
    for queue in queue_readings(now):
        if queue.name in (home.worker_queue, home.spark_queue) and queue.unserved:
            yield f"the queue {queue.name} has no worker"
    if not rounds.looked_lately(now):
        yield "alerts have not been evaluated for two minutes"
