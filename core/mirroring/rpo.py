"""How late is a branch, and since when is late too late? Times in UTC, lengths in seconds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

LATE_AFTER = timedelta(minutes=5)
"""The target of a mirror that has none of its own."""
LONGEST_RPO = 30 * 86_400
"""Seconds: no target may be longer than the time over which it is measured."""
MEASURED = timedelta(days=30)
"""So far back one looks to say how well a target was kept."""

LOOK_TAKES = timedelta(seconds=15)
"""So long a look may take before it is late."""


@dataclass(frozen=True, slots=True)
class Targets:
    """From when on waiting is worth a word, a warning, or no longer knowing."""

    look_interval: timedelta = timedelta(minutes=1)
    promote_interval: timedelta = timedelta(minutes=1)
    blocked_after: timedelta = timedelta(minutes=1)
    late_after: timedelta = LATE_AFTER

    @property
    def stale_after(self) -> timedelta:
        """A status older than three looks says nothing about now."""
        return 3 * self.look_interval

    @property
    def destination_stale_after(self) -> timedelta:
        """The same of the destination: whoever promotes looks at its branches and tags."""
        return 3 * self.promote_interval


def lag(oldest_seen_at: datetime | None, now: datetime) -> float:
    """Seconds since we first saw the oldest commit that is not mirrored yet; 0 when there is none.

    Never from the commit's own date: that has whole seconds, another clock, and old commits may join a branch.
    """
    if oldest_seen_at is None:
        return 0.0
    return max(0.0, (now - oldest_seen_at).total_seconds())


def worst_lag(lags: Collection[float | None]) -> float | None:
    """The longest of several; None where nobody knows one of them, and no other is late."""
    worst = max((lag for lag in lags if lag is not None), default=None)
    return None if not worst and None in lags else worst


def breached_at(oldest_seen_at: datetime | None, now: datetime, target: timedelta) -> datetime | None:
    """Since when a branch is later than its target; None when it isn't: one with nothing to mirror never is."""
    if oldest_seen_at is None or now - oldest_seen_at <= target:
        return None
    return oldest_seen_at + target


def attainment(breached: timedelta, measured: timedelta) -> float | None:
    """The share of a time, 0 to 1, in which a target was kept; None when nothing was measured."""
    return max(0.0, 1 - breached / measured) if measured > timedelta() else None


def is_stale(looked_at: datetime | None, now: datetime, targets: Targets) -> bool:
    """Whether the last look at the source is too long ago to speak of now."""
    return looked_at is not None and now - looked_at > targets.stale_after


def is_look_overdue(looked_at: datetime | None, now: datetime, targets: Targets) -> bool:
    """Whether the last look at the source is longer ago than one look should be from the next."""
    return looked_at is not None and now - looked_at > targets.look_interval + LOOK_TAKES


def is_destination_stale(looked_at: datetime | None, now: datetime, targets: Targets) -> bool:
    """The same of the destination."""
    return looked_at is not None and now - looked_at > targets.destination_stale_after


def in_words(seconds: float | None) -> str:
    """A length of time as people say it: "6 s", "14 min", "2 h", "3 days"; "—" when it isn't known."""
    if seconds is None:
        return "—"
    if seconds <= 0:
        return "0"
    if seconds < 1:
        return "< 1 s"
    for size, unit in ((86400, "day"), (3600, "h"), (60, "min")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} days" if unit == "day" and number > 1 else f"{number} {unit}"
    return f"{int(seconds)} s"


# --- afterwards -------------------------------------------------------------------------------------------------------
#
# A branch's moves say which commit it showed from when on. The first commit beyond that one was seen at the source at
# some moment, and from then on the branch was late, until the next move. So nothing has to be measured for it.


@dataclass(frozen=True, slots=True)
class Stand:
    """From `since` on a branch showed a commit. The next one was seen at `waits_since`; None: there is none.

    Not `known` is where a branch showed nothing, or what somebody else had put there.
    """

    since: datetime
    waits_since: datetime | None = None
    known: bool = True


def worst_lags(
    stands: Sequence[Stand], began: datetime, step: timedelta, steps: int, now: datetime
) -> list[float | None]:
    """The worst lag in seconds of each of some steps of equal length; None where nobody knows it all the time.

    `stands` in order of time, each until the next one, the last until `now`.
    """
    worst: list[float | None] = [None] * steps
    unknown = set[int]()
    for stand, end in zip(stands, [*(after.since for after in stands[1:]), now], strict=False):
        first = max(0, (stand.since - began) // step)
        for n in range(first, steps):
            at = began + n * step
            if at >= end:
                break
            if not stand.known:
                unknown.add(n)
                continue
            late = 0.0
            if stand.waits_since is not None:
                late = max(0.0, (min(end, at + step) - stand.waits_since).total_seconds())
            worst[n] = max(worst[n] or 0.0, late)
    return [None if n in unknown and not value else value for n, value in enumerate(worst)]
