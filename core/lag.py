"""How late is a branch, and since when is late too late? Times in UTC, lengths in seconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Targets:
    """From when on waiting is worth a word, a warning, or no longer knowing."""

    look_interval: timedelta = timedelta(minutes=1)
    blocked_after: timedelta = timedelta(minutes=1)
    late_after: timedelta = timedelta(minutes=5)

    @property
    def stale_after(self) -> timedelta:
        """A status older than three looks says nothing about now."""
        return 3 * self.look_interval


def lag(oldest_seen_at: datetime | None, now: datetime) -> float:
    """Seconds since we first saw the oldest commit that is not mirrored yet; 0 when there is none.

    Never from the commit's own date: that has whole seconds, another clock, and old commits may join a branch.
    """
    if oldest_seen_at is None:
        return 0.0
    return max(0.0, (now - oldest_seen_at).total_seconds())


def is_stale(looked_at: datetime | None, now: datetime, targets: Targets) -> bool:
    """Whether the last look is too long ago to speak of now."""
    return looked_at is not None and now - looked_at > targets.stale_after


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
            return _counted(int(seconds // size), unit)
    return f"{int(seconds)} s"


def _counted(number: int, unit: str) -> str:
    return f"{number} days" if unit == "day" and number > 1 else f"{number} {unit}"
