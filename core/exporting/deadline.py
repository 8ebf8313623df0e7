"""What bounds a slice of an export's work: a deadline for every visible write, and rates."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Late(Exception):
    """The slice is over: what was not begun belongs to the next one. No failure of anything."""


class Deadline:
    """A Unix time from when on no visible write may begin: a slice whose worker is gone must not write late."""

    def __init__(
        self, at: float, *, clock: Callable[[], float] = time.time, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.at, self._clock, self._sleep = at, clock, sleep

    def check(self) -> None:
        """To be called right before a write. Raises Late."""
        if self._clock() >= self.at:
            raise Late

    def pause(self, seconds: float) -> None:
        """Waits; raises Late at once where that would take too long."""
        if seconds <= 0:
            return
        if self._clock() + seconds >= self.at:
            raise Late
        self._sleep(seconds)


class Rate:
    """So many things per second (0: any number), for the threads of a process together. Saves nothing up."""

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._each = 1 / per_second if per_second else 0.0
        self._clock, self._free_at = clock, clock()
        self._lock = threading.Lock()

    def turn(self, amount: float = 1.0) -> float:
        """Takes the next turn, for so many things; gives the seconds to wait for it."""
        with self._lock:
            now = self._clock()
            at = max(now, self._free_at)
            self._free_at = at + amount * self._each
            return at - now
