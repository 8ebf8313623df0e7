"""What time it is: by the database's clock, which all processes share. That of a machine may be wrong."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, Func, Value
from django.db.models.functions import Now

from db.raw_sql import fetch

SURE_SECONDS = 10.0
"""So long a process counts on by itself before it asks again."""
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_last_reading: tuple[float, datetime] | None = None


def now() -> datetime:
    """The moment by the database's clock. SQLite has none but this machine's."""
    global _last_reading
    if connection.vendor == "sqlite":
        return datetime.now(UTC)
    if _last_reading is None or _seconds() - _last_reading[0] > SURE_SECONDS:
        _last_reading = _seconds(), fetch("SELECT statement_timestamp()")[0][0]
    then, moment = _last_reading
    return moment + timedelta(seconds=_seconds() - then)


def machine_ahead() -> float:
    """By how many seconds this machine's clock is ahead of the database's."""
    return (datetime.now(UTC) - now()).total_seconds()


def _seconds() -> float:
    """Counts on whatever is done to this machine's clock, and while it sleeps."""
    return time.clock_gettime(_STEADY)


def after_now(seconds: float) -> Any:
    """A moment by the database's clock, as exact as `Now()`: SQLite compares times as text, so both need one form."""
    if connection.vendor != "sqlite":
        return Now() + timedelta(seconds=seconds)
    text = Value("%Y-%m-%d %H:%M:%f"), Value("now"), Value(f"{seconds:+.3f} seconds")
    return Func(*text, function="STRFTIME", output_field=DateTimeField())
