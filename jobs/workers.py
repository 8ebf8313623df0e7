"""The processes that take tasks from the queues, as each says itself every few seconds.

One that ends as it should takes its row along. One that was killed leaves it: it stopped answering, and pages, API and
the controller's log say so for a day.
"""

from __future__ import annotations

import logging
import os
import socket
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.db.models import F
from django.db.models.functions import Now
from django_q.conf import Conf

from db import clock
from jobs.lease import HOLDER
from jobs.models import Worker

log = logging.getLogger("lakemirror.workers")

REPORT_SECONDS = 5.0
SILENT_AFTER = timedelta(seconds=30)
KEPT = timedelta(days=1)
CONNECT_SECONDS = 1.0
LOCAL_SPARK = "local"
_CONNECT_PORT = 15002


def report(*, queue: str, spark: str = "") -> None:
    """Say that this process works for a queue now. `spark`: the address of the Spark that it uses, "" for none."""
    host, pid, _ = HOLDER.rsplit(":", 2)
    about = {
        "queue": queue,
        "host": host,
        "pid": int(pid),
        "slots": Conf.WORKERS,
        "load": os.getloadavg()[0],
        "cores": os.cpu_count() or 1,
        "spark": _address(spark)[:200],
        "spark_trouble": spark_trouble(spark),
        "lost_at": None,
        "heard_at": Now(),
    }
    Worker.objects.update_or_create(name=HOLDER, defaults=about, create_defaults=about | {"started_at": Now()})


def leave() -> None:
    """This process ends as it should."""
    Worker.objects.filter(name=HOLDER).delete()


def spark_trouble(address: str) -> str:
    """Why a Spark Connect server can't be reached, or "". A driver of our own is in the worker itself."""
    if not address.startswith("sc://"):
        return ""
    host, port = _host_and_port(address)
    try:
        with socket.create_connection((host, port), CONNECT_SECONDS):
            return ""
    except OSError as error:
        return f"{host}:{port} can't be reached: {error.strerror or error}"[:200]


def _address(address: str) -> str:
    """Without what else stands in it, such as a token."""
    return "{}:{}".format(*_host_and_port(address)) if address.startswith("sc://") else address


def _host_and_port(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    return parts.hostname or "localhost", parts.port or _CONNECT_PORT


def note_lost() -> None:
    """By the controllers: whoever stopped answering is logged once, and forgotten after a day."""
    now = clock.now()
    for worker in Worker.objects.filter(lost_at=None, heard_at__lt=now - SILENT_AFTER):
        if Worker.objects.filter(pk=worker.pk, lost_at=None).update(lost_at=F("heard_at")) == 1:
            log.error("%s", lost_sentence(worker))
    Worker.objects.filter(heard_at__lt=now - KEPT).delete()


def lost_sentence(worker: Worker) -> str:
    """That a worker is gone, and since when."""
    at = f"{worker.heard_at:%Y-%m-%d %H:%M:%S} UTC"
    return f"Worker {worker.host}:{worker.pid} of queue {worker.queue} stopped answering at {at}."


def is_lost(worker: Worker, now: datetime) -> bool:
    """Whether it has not answered for so long that it must have been killed, or can't reach the database."""
    return now - worker.heard_at > SILENT_AFTER
