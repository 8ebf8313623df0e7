"""How fast a check goes, and when it will be done; pure. None where nobody can know."""

from __future__ import annotations

from datetime import datetime


def per_second(number: int, began: datetime, until: datetime) -> float | None:
    """How many a second, once there are any."""
    seconds = (until - began).total_seconds()
    return number / seconds if number > 0 and seconds > 0 else None


def expected_end(done: int, total: int, began: datetime, now: datetime) -> datetime | None:
    """When all are done if it goes on like that: not known before the first one is."""
    if not 0 < done <= total:
        return None
    try:
        return now + (now - began) * ((total - done) / done)
    except OverflowError:  # not in this age
        return None
