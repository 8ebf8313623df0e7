"""How far a task is with what it brings. It is told in rows, as differences since the last time: who gets those of all
tasks adds them up. Spark hands rows over when a task has ended; until then a file at the destination tells the totals.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from adapters.s3.mover import PUT_WHOLE
from core.mirroring.content_proof import OWN_FILES

COUNTS = ("lacking", "begun", "ended", "copied", "copied_bytes", "passed_bytes")
"""Of objects: found missing, begun, ended one way or the other, and copied; bytes of those that were copied, and bytes
that have passed through the process, of objects in hand too."""
SMALL, LARGE = LANES = ("small", "large")
FOLDER = f"{OWN_FILES}copying/"
"""Below a mirror's namespace: a file for each task of the job at work, the next job's take their places."""

Lanes = Mapping[str, Mapping[str, int]]
"""By lane each of COUNTS."""


def lane_of(size: int) -> str:
    """Which lane an object is in."""
    return LARGE if size > PUT_WHOLE else SMALL


def nothing() -> dict[str, dict[str, int]]:
    """Lanes without any object."""
    return {lane: dict.fromkeys(COUNTS, 0) for lane in LANES}


def file_of(task: int) -> str:
    """Where a task tells of itself, below the namespace."""
    return f"{FOLDER}{task}.json"


def told_by(data: bytes, since: float) -> Lanes | None:
    """What a task's file says; None for one of a job made before that (Unix time), and for what is no such file."""
    try:
        told = json.loads(data)
        lanes = {lane: {name: int(told["lanes"][lane][name]) for name in COUNTS} for lane in LANES}
        return lanes if float(told["made_at"]) >= since else None
    except (ValueError, TypeError, LookupError):
        return None


class Progress:
    """Counts by lane. Safe to use from several threads. `passed`: bytes that have passed so far."""

    def __init__(self, passed: Callable[[], int]) -> None:
        self._passed = passed
        self._lock = threading.Lock()
        self._all, self._told = nothing(), nothing()

    def expect(self, sizes: Iterable[int]) -> None:
        """Objects of these sizes are missing."""
        with self._lock:
            for size in sizes:
                self._all[lane_of(size)]["lacking"] += 1

    def begin(self, size: int) -> None:
        """One of that size has its turn."""
        with self._lock:
            self._all[lane_of(size)]["begun"] += 1

    def end(self, size: int, *, copied: int, copied_bytes: int) -> None:
        """It has had it."""
        with self._lock:
            counts = self._all[lane_of(size)]
            counts["ended"] += 1
            counts["copied"] += copied
            counts["copied_bytes"] += copied_bytes

    def file(self, made_at: float) -> bytes:
        """What the file of a task says, of a job that was made then (Unix time)."""
        return json.dumps({"made_at": made_at, "lanes": self._now()}).encode()

    def take(self) -> list[dict[str, Any]]:
        """A row of the kind 'bringing' for each lane in which something has changed since the last time."""
        now = self._now()
        new = {lane: {name: now[lane][name] - self._told[lane][name] for name in COUNTS} for lane in LANES}
        self._told = now
        return [{"kind": "bringing", "lane": lane, **counts} for lane, counts in new.items() if any(counts.values())]

    def _now(self) -> dict[str, dict[str, int]]:
        with self._lock:
            self._all[SMALL]["passed_bytes"] = self._passed()
            return {lane: dict(counts) for lane, counts in self._all.items()}
