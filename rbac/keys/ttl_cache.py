"""What a process remembers for a while: the values used last, at most so many."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """Values by key, each until its time is over."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[str, tuple[T, float]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> T | None:
        """The value, if it is still good."""
        with self._lock:
            value, ends_at = self._entries.get(key, (None, 0.0))
            return value if time.monotonic() < ends_at else None

    def put(self, key: str, value: T, seconds: float) -> None:
        """Remember it for so long."""
        with self._lock:
            self._entries[key] = value, time.monotonic() + seconds
            self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)

    def drop(self, key: str) -> None:
        """Forget it."""
        with self._lock:
            self._entries.pop(key, None)
