"""When a message that did not arrive is sent again: after longer and longer pauses, for a day."""

from __future__ import annotations

from datetime import datetime, timedelta

FIRST = timedelta(seconds=10)
LONGEST = timedelta(hours=1)
FOR = timedelta(days=1)


def next_try(tries: int, since: datetime, now: datetime) -> datetime | None:
    """After so many tries; None: a day has gone by since it happened, and nothing more is tried."""
    at = now + min(LONGEST, FIRST * 2 ** min(tries - 1, 20))
    return at if at <= since + FOR else None
