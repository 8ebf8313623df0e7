"""How far a task is with what it brings, told in differences since the last time: who gets those of all tasks adds them
up, and so knows how much each lane has in hand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from adapters.s3.mover import PUT_WHOLE

COUNTS = ("lacking", "begun", "ended", "copied", "copied_bytes", "passed_bytes")
"""Of objects: found missing, begun, ended one way or the other, and copied; bytes of those that were copied, and bytes
that have passed through the process, of objects in hand too."""


def is_large(size: int) -> bool:
    """Which lane an object is in."""
    return size > PUT_WHOLE


class Progress:
    """Counts by lane. Safe to use from several threads. `passed`: bytes that have passed so far."""

    def __init__(self, passed: Callable[[], int]) -> None:
        self._passed, self._told_passed = passed, 0
        self._lock = threading.Lock()
        self._counts = self._none()

    @staticmethod
    def _none() -> dict[bool, dict[str, int]]:
        return {large: dict.fromkeys(COUNTS, 0) for large in (False, True)}

    def expect(self, sizes: Iterable[int]) -> None:
        """Objects of these sizes are missing."""
        with self._lock:
            for size in sizes:
                self._counts[is_large(size)]["lacking"] += 1

    def begin(self, size: int) -> None:
        """One of that size has its turn."""
        with self._lock:
            self._counts[is_large(size)]["begun"] += 1

    def end(self, size: int, *, copied: int, copied_bytes: int) -> None:
        """It has had it."""
        with self._lock:
            counts = self._counts[is_large(size)]
            counts["ended"] += 1
            counts["copied"] += copied
            counts["copied_bytes"] += copied_bytes

    def take(self) -> list[dict[str, Any]]:
        """A row of the kind 'bringing' for each lane in which something has changed since the last time."""
        with self._lock:
            counts, self._counts = self._counts, self._none()
            passed = self._passed()
            counts[False]["passed_bytes"], self._told_passed = passed - self._told_passed, passed
        return [{"kind": "bringing", "large": large, **lane} for large, lane in counts.items() if any(lane.values())]
