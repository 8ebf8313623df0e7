"""When what failed is tried again. Pure. Seconds."""

from __future__ import annotations

LONGEST = 3600.0
DAILY = 86_400.0
"""What failed for a reason of the object's own, or was skipped."""
PROBE_BLOCKED = 60.0
PROBE_DOWN = 30.0
"""The longest time between two looks at what does not answer."""
ROUND_SECONDS = 20.0
"""So long objects of a link are begun; then other links have their turn."""
SLICE_SECONDS = 30.0
"""The same of what Spark does."""
MARGIN_SECONDS = 75.0
"""Longer than one request to a store can take, and clocks of machines differ: who takes over waits so long."""
LONGEST_WRITES = max(ROUND_SECONDS, SLICE_SECONDS) + MARGIN_SECONDS
"""So long after it was last heard of a worker that is gone may still write."""


def pause_after(attempts: int, jitter: float, asked: float = 0.0) -> float:
    """The time until the next try of an object after so many failed ones, at least 1: 1 s, then four times as long each
    time, at most an hour. `jitter` from 0 to 1 spreads it over 0.5 to 1 of that; `asked`: so long the store
    wants, an hour at most, too."""
    longest = min(LONGEST, 4.0 ** min(attempts - 1, 10))
    return max(min(asked, LONGEST), longest * (0.5 + 0.5 * jitter))


def probe_pause(probes: int) -> float:
    """The time until the next look at a link that is down, after so many: 1, 2, 4 ... 30 s."""
    return float(min(PROBE_DOWN, 2.0 ** min(probes, 10)))
