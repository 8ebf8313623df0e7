"""From when on people are told that a key, or a certificate, is about to expire. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

TOLD_BEFORE = timedelta(days=14)
URGENT = timedelta(days=3)
SHORT_LIVED = timedelta(days=7)
"""Nothing is told of what was made for less than this: a key for one task, a certificate that a machine renews."""


def told_from(created_at: datetime, expires_at: datetime) -> datetime | None:
    """Since when its end is worth a word: two weeks before, and not in the first half of its life. None: never."""
    lives = expires_at - created_at
    if lives < SHORT_LIVED:
        return None
    return max(expires_at - TOLD_BEFORE, created_at + lives / 2)


def urgent_from(created_at: datetime, expires_at: datetime) -> datetime | None:
    """Since when somebody has to see to it. None: never."""
    begins = told_from(created_at, expires_at)
    return None if begins is None else max(begins, expires_at - URGENT)


def is_told(created_at: datetime, expires_at: datetime, now: datetime) -> bool:
    """Whether its end is worth a word by now."""
    begins = told_from(created_at, expires_at)
    return begins is not None and begins <= now
