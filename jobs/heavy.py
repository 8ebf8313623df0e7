"""Duties that are light mostly, and now and then heavy: for so long they are taken from the queue of the Spark jobs."""

from __future__ import annotations

from db import clock
from jobs import duties
from jobs.models import Duty, Worker
from jobs.workers import SILENT_AFTER


def is_heavy_now(duty: Duty, region: str) -> bool:
    """Whether a duty that belongs to a region's deployment is in the hands of those that have Spark."""
    return duty.queue == _heavy(duty, region)


def make_heavy(duty: Duty, region: str) -> bool:
    """Give a duty to those that have Spark from now on, if there are any; whether it is so now."""
    queue = _heavy(duty, region)
    if duty.queue != queue and not _is_served(queue):
        return False
    _move(duty, queue)
    return True


def make_light(duty: Duty, region: str) -> None:
    """Give it back to those that do all the rest."""
    _move(duty, duties.queue_name(duty.kind, region))


def _heavy(duty: Duty, region: str) -> str:
    return f"{duties.queue_name(duty.kind, region)}-spark"


def _is_served(queue: str) -> bool:
    """Whether somebody takes tasks from a queue, and can reach Spark."""
    heard = Worker.objects.filter(queue=queue, heard_at__gt=clock.now() - SILENT_AFTER)
    return heard.filter(spark_trouble="").exists()


def _move(duty: Duty, queue: str) -> None:
    if duty.queue != queue:
        Duty.objects.filter(pk=duty.pk).update(queue=queue)
        duty.queue = queue
