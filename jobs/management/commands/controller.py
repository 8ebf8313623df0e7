"""The clock: sends wake-ups for duties that are due. Does no work itself; any number may run."""

from __future__ import annotations

import logging
import signal
import time
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError, close_old_connections
from django.db.models import Min
from django.db.models.functions import Now

from db import clock, tables
from deployment import config
from jobs import duties, housekeeping, kinds
from jobs.models import Duty
from jobs.querysets import DutyQuerySet
from jobs.queue_process import LockFreeEvent

log = logging.getLogger("lakemirror.controller")

TICK_SECONDS = 0.5
LEAST_SECONDS = 0.05
LOOK_ROUND_SECONDS = 5.0


class Command(BaseCommand):
    help = "Run the controller: wakes workers for tasks that are due. Runs until stopped."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = LockFreeEvent()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        if tables.watch.wait(stop.wait):
            run(stop)
        log.info("the clock has stopped")


def run(stop: LockFreeEvent) -> None:
    """Until it is told to stop."""
    log.info("the clock is running")
    if unused := config.unused_in_use():
        log.info("accepted from the configuration, not used: %s", ", ".join(unused))
    pause, look_at = TICK_SECONDS, 0.0
    while not stop.wait(pause):
        if time.monotonic() >= look_at:
            look_at = time.monotonic() + LOOK_ROUND_SECONDS
            look_round()
        pause = tick()


def tick() -> float:
    """Send what is due, each message once: who may send it decides the database. Seconds until the next tick."""
    try:
        close_old_connections()
        housekeeping.refresh()
        now = config.current()
        own_duties = Duty.objects.filter(queue__in=[now.worker_queue, now.spark_queue], kind__in=kinds.names())
        duties.send(own_duties.to_send())
        return _until_due(own_duties)
    except DatabaseError as error:
        log.warning("the database did not answer, trying again: %s", error)
        return TICK_SECONDS


def look_round() -> None:
    """Duties that our mirrors need, and nobody takes up, become ours; housekeeping."""
    try:
        if number := duties.take_over():
            log.warning("%d duties were taken over: nobody took them up", number)
        housekeeping.look_round()
    except DatabaseError as error:
        log.warning("the database did not answer, trying again: %s", error)


def _until_due(own_duties: DutyQuerySet) -> float:
    """A tick, or less when a duty is due before: what is looked for again in half a second shall not take a whole."""
    due = own_duties.filter(until=None, due_at__gt=Now()).aggregate(soonest=Min("due_at"))["soonest"]
    seconds = TICK_SECONDS if due is None else (due - clock.now()).total_seconds()
    return min(TICK_SECONDS, max(LEAST_SECONDS, seconds))
