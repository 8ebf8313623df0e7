"""All mirrors at once: how each is doing, for pages that sort, filter or sum up over many.

Of a few mirrors this is read for each request. Of many it takes a while, so a process keeps what it has read. What is
some seconds old is given while it is read anew behind the request's back, what is older is waited for. The pages say
as of when. Of rows that somebody looks at, those whose mirror was changed or moved since are read afresh.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import datetime

from django.db import connection

from db import clock
from db.chunks import chunks
from mirrors.models import Mirror, Promotion
from mirrors.models.querysets import MirrorQuerySet
from mirrors.status.mirror import MirrorStatus, brief_statuses

FEW = 200
FRESH_SECONDS = 5.0
STALE_SECONDS = 20.0
AT_ONCE = 50
REST = 3.0
"""Behind requests' backs so many are read at a time, then it rests so many times as long as that took: a request that
comes meanwhile shares the interpreter with one such piece, not with the whole."""
_LOOKS = {"destination_looked_at", "tags_unseen_since"}
"""Fields of a mirror that change with each look at it."""

_reading = threading.Lock()
_waited_for = threading.Event()
"""Somebody waits for what is read behind requests' backs: no more rests."""
_cached: tuple[float, Sequence[MirrorStatus]] | None = None
_took = 0.0
"""Seconds of the last reading: the longer it takes, the less often it is done."""


def fleet_statuses(visible: MirrorQuerySet, now: datetime) -> Sequence[MirrorStatus]:
    """These mirrors by name, each with a few of its branches; `as_of` may be some seconds ago."""
    wanted = set(visible.values_list("pk", flat=True))
    if len(wanted) <= FEW:
        return brief_statuses(visible.select_related("source").order_by("name"), now)
    return [reading for reading in _all() if reading.mirror.pk in wanted]


def up_to_date(page: Sequence[MirrorStatus], now: datetime) -> Sequence[MirrorStatus]:
    """These readings without mirrors that are gone, and anew where somebody changed the mirror or a branch moved."""
    rows = Mirror.objects.live().select_related("source").in_bulk([reading.mirror.pk for reading in page])
    existing = [reading for reading in page if reading.mirror.pk in rows]
    moved = _moved(existing)
    old = [
        rows[reading.mirror.pk]
        for reading in existing
        if reading.mirror.pk in moved or _changed(reading.mirror, rows[reading.mirror.pk])
    ]
    anew = {reading.mirror.pk: reading for reading in brief_statuses(old, now)} if old else {}
    return [anew.get(reading.mirror.pk, reading) for reading in existing]


def _moved(page: Sequence[MirrorStatus]) -> set[int]:
    """Mirrors of which a branch was moved after they were read."""
    read_at = {reading.mirror.pk: reading.as_of for reading in page}
    since = min(read_at.values(), default=None)
    if since is None:
        return set()
    rows = Promotion.objects.filter(mirror__in=read_at, at__gte=since).values_list("mirror_id", "at")
    return {mirror for mirror, at in rows if at >= read_at[mirror]}


def _changed(cached: Mirror, row: Mirror) -> bool:
    fields = (field.attname for field in Mirror._meta.concrete_fields if field.attname not in _LOOKS)
    return any(getattr(cached, name) != getattr(row, name) for name in fields)


def _all() -> Sequence[MirrorStatus]:
    cached = _cached
    age = time.monotonic() - cached[0] if cached else STALE_SECONDS
    if cached is None or age >= STALE_SECONDS:
        return _read_or_wait()
    if age >= max(FRESH_SECONDS, 4 * _took) and not _reading.locked():
        threading.Thread(target=_read_aside, daemon=True).start()
    return cached[1]


def _read_or_wait() -> Sequence[MirrorStatus]:
    """One thread reads; others wait for what it finds, and let it rest no more."""
    _waited_for.set()
    with _reading:
        _waited_for.clear()
        if _cached is not None and time.monotonic() - _cached[0] < STALE_SECONDS:
            return _cached[1]
        return _read()


def _read_aside() -> None:
    """Unless another thread just does it."""
    if not _reading.acquire(blocking=False):
        return
    try:
        _read(AT_ONCE)
    finally:
        _reading.release()
        connection.close()


def _read(at_once: int = 0) -> Sequence[MirrorStatus]:
    """All of them, in one go or so many at a time."""
    global _cached, _took
    began = time.monotonic()
    rows = Mirror.objects.live().select_related("source").order_by("name")
    readings = _piecemeal(rows, at_once) if at_once else brief_statuses(rows, clock.now())
    rested = 1 + REST if at_once else 1
    _took, _cached = (time.monotonic() - began) / rested, (began if at_once else time.monotonic(), readings)
    return readings


def _piecemeal(rows: MirrorQuerySet, at_once: int) -> Sequence[MirrorStatus]:
    readings: list[MirrorStatus] = []
    keys = list(rows.values_list("pk", flat=True))
    for some in chunks(keys, at_once):
        began = time.monotonic()
        readings += brief_statuses(rows.filter(pk__in=some), clock.now())
        _waited_for.wait(REST * (time.monotonic() - began))
    return readings
