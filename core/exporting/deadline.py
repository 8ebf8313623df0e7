"""What bounds a slice of copying: a deadline, rates, and how many bytes are held in memory."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Late(Exception):
    """The slice is over: what was not begun belongs to the next one. No failure of anything."""


class Deadline:
    """A Unix time from when on no visible write may begin: a slice whose worker is gone must not write late."""

    def __init__(
        self, at: float, *, clock: Callable[[], float] = time.time, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.at, self._clock, self._sleep = at, clock, sleep

    @property
    def left(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self.at - self._clock())

    def extend(self, seconds: float) -> None:
        """There are at least so many seconds left from now on."""
        self.at = max(self.at, self._clock() + seconds)

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
    """So many things per second (0: any number), for the threads of a process together. Saves nothing up. `taken`: how
    many there were so far."""

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self._each = 1 / per_second if per_second else 0.0
        self._clock, self._free_at = clock, clock()
        self.taken = 0.0
        self._lock = threading.Lock()

    def set(self, per_second: float) -> None:
        """So many from now on; what was let through already is paid for by that."""
        with self._lock:
            now, each = self._clock(), 1 / per_second if per_second else 0.0
            owed = max(0.0, self._free_at - now) / self._each if self._each else 0.0
            self.per_second, self._each, self._free_at = per_second, each, now + owed * each

    def turn(self, amount: float = 1.0) -> float:
        """Takes the next turn, for so many things; gives the seconds to wait for it."""
        with self._lock:
            now = self._clock()
            at = max(now, self._free_at)
            self._free_at = at + amount * self._each
            self.taken += amount
            return at - now


class Budget:
    """So many bytes at most are held at once by the threads of a process, in the order in which they ask. What is
    larger than all of that is held alone."""

    def __init__(self, most: float) -> None:
        self._most, self._held = most, 0
        self._waiting = deque[object]()
        self._changed = threading.Condition()

    @contextmanager
    def hold(self, size: int, deadline: Deadline) -> Iterator[None]:
        """Waits until there is room for so many bytes, which are given back in the end. Raises Late."""
        self._take(size, deadline)
        try:
            yield
        finally:
            with self._changed:
                self._held -= size
                self._changed.notify_all()

    def resize(self, most: float) -> None:
        """So many bytes from now on."""
        with self._changed:
            self._most = most
            self._changed.notify_all()

    def _take(self, size: int, deadline: Deadline) -> None:
        own = object()
        with self._changed:
            self._waiting.append(own)
            try:
                while self._waiting[0] is not own or not self._fits(size):
                    deadline.check()
                    self._changed.wait(min(1.0, deadline.left))
                self._held += size
            finally:
                self._waiting.remove(own)
                self._changed.notify_all()

    def _fits(self, size: int) -> bool:
        return not self._held or self._held + size <= self._most
