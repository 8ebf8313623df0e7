"""The clock: sends wake-ups for duties that are due. Does no work itself; any number may run."""

from __future__ import annotations

import logging
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError, close_old_connections

from lakemirror_site import config
from mirrors import duties
from mirrors.models import Duty

log = logging.getLogger("lakemirror.controller")

TICK_SECONDS = 0.5


class Command(BaseCommand):
    help = "Send wake-ups for duties that are due, until stopped."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        log.info("the clock is running")
        while not stop.wait(TICK_SECONDS):
            _tick()
        log.info("the clock has stopped")


def _tick() -> None:
    """A message is sent once; who takes the right to send it decides the database."""
    try:
        close_old_connections()
        now = config.current()
        queues = [now.worker_queue, now.spark_queue]
        duties.send(Duty.objects.filter(queue__in=queues).to_send())
    except DatabaseError as error:
        log.warning("the database did not answer, trying again: %s", error)
