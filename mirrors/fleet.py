"""All mirrors at once: how each is doing, for pages that sort, filter or sum up over many.

Of a few mirrors this is read for each request. Of many it takes a while, so a process keeps what it has read. What is
some seconds old is given while it is read anew behind the request's back, what is older is waited for. The pages say
as of when, and rows that somebody looks at are read afresh.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import datetime

from django.db import connection

from mirrors import clock
from mirrors.models import Mirror
from mirrors.querysets import MirrorQuerySet
from mirrors.readings import MirrorReading, mirror_briefs

FEW = 200
FRESH_SECONDS = 5.0
STALE_SECONDS = 20.0

_reading = threading.Lock()
_kept: tuple[float, Sequence[MirrorReading]] | None = None
_took = 0.0
"""Seconds of the last reading: the longer it takes, the less often it is done."""


def fleet_readings(visible: MirrorQuerySet, now: datetime) -> Sequence[MirrorReading]:
    """These mirrors by name, each with a few of its branches; `as_of` may be some seconds ago."""
    wanted = set(visible.values_list("pk", flat=True))
    if len(wanted) <= FEW:
        return mirror_briefs(visible.select_related("source").order_by("name"), now)
    return [reading for reading in _all() if reading.mirror.pk in wanted]


def _all() -> Sequence[MirrorReading]:
    kept = _kept
    age = time.monotonic() - kept[0] if kept else STALE_SECONDS
    if kept is None or age >= STALE_SECONDS:
        return _read_or_wait()
    if age >= max(FRESH_SECONDS, 4 * _took) and not _reading.locked():
        threading.Thread(target=_read_aside, daemon=True).start()
    return kept[1]


def _read_or_wait() -> Sequence[MirrorReading]:
    """One thread reads; others wait for what it finds."""
    with _reading:
        if _kept is not None and time.monotonic() - _kept[0] < STALE_SECONDS:
            return _kept[1]
        return _read()


def _read_aside() -> None:
    """Unless another thread just does it."""
    if not _reading.acquire(blocking=False):
        return
    try:
        _read()
    finally:
        _reading.release()
        connection.close()


def _read() -> Sequence[MirrorReading]:
    global _kept, _took
    began = time.monotonic()
    rows = Mirror.objects.live().select_related("source").order_by("name")
    readings = mirror_briefs(rows, clock.now())
    _took, _kept = time.monotonic() - began, (time.monotonic(), readings)
    return readings
