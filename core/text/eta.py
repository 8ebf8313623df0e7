"""How fast something goes, and when it will be done; pure. None where nobody can know."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import StatisticsError, linear_regression

FEWEST = 3
"""So many samples make a pace: one alone says nothing of the next."""
SHARE = 100
"""At least one part in so many is done before the rest is estimated from it."""
LONGEST = timedelta(days=30)
"""What would take longer than that is not known."""


def per_second(number: int, began: datetime, until: datetime) -> float | None:
    """How many a second, once there are any."""
    seconds = (until - began).total_seconds()
    return number / seconds if number > 0 and seconds > 0 else None


def expected_end(done: int, total: int, began: datetime, now: datetime) -> datetime | None:
    """When all are done if it goes on like that: not known before a few are, and a hundredth of all."""
    if not 0 < done <= total or (done < total and (done < FEWEST or done * SHARE < total)):
        return None
    return now + (now - began) * ((total - done) / done)


def caught_up_at(samples: Sequence[tuple[datetime, int]], now: datetime) -> datetime | None:
    """When a backlog is gone, by the line through how much it was at some moments. Not known from fewer than three of
    them, nor where it does not shrink."""
    if len(samples) < FEWEST or samples[-1][1] <= 0:
        return None
    first = samples[0][0]
    try:
        seconds, backlog = zip(*(((at - first).total_seconds(), number) for at, number in samples), strict=True)
        pace = linear_regression(seconds, backlog).slope
    except StatisticsError:  # all at one moment
        return None
    at, left = samples[-1]
    if pace >= 0 or left / -pace > LONGEST.total_seconds():
        return None
    return max(now, at + timedelta(seconds=left / -pace))


def since_peak(samples: Sequence[tuple[datetime, int]]) -> Sequence[tuple[datetime, int]]:
    """The samples from the last highest on: how a backlog shrinks is not told by how it grew before."""
    peak = max((number for _, number in samples), default=0)
    first = max((n for n, (_, number) in enumerate(samples) if number == peak), default=0)
    return samples[first:]
