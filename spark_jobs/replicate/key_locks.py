"""Locks of single keys: versions of a key are copied, hidden and purged by one thread at a time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class KeyLocks:
    """One lock for each key that somebody holds, or waits for."""

    def __init__(self) -> None:
        self._one = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._users = Counter[str]()

    @contextmanager
    def held(self, key: str) -> Iterator[None]:
        """Hold a key."""
        with self._one:
            lock = self._locks.setdefault(key, threading.Lock())
            self._users[key] += 1
        try:
            with lock:
                yield
        finally:
            with self._one:
                self._users[key] -= 1
                if not self._users[key]:
                    del self._users[key], self._locks[key]
