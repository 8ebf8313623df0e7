"""What was written to a store, in order: the replication stand-in follows it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

PUT, DELETE = "put", "delete"


@dataclass(frozen=True, slots=True)
class Write:
    """A successful write. `version` is the store's id of the object's version (or of the delete marker)."""

    op: str
    bucket: str
    key: str
    version: str
    size: int = 0


class Journal:
    """An ordered list that readers wait on. Positions count from 0."""

    def __init__(self) -> None:
        self._writes: list[Write] = []
        self._changed = threading.Condition()

    def append(self, writes: Sequence[Write]) -> None:
        """Adds writes and wakes the readers."""
        with self._changed:
            self._writes.extend(writes)
            self._changed.notify_all()

    def read(self, start: int, *, wait: float = 0.0, limit: int = 1000) -> list[Write]:
        """Writes from position `start` on; waits up to `wait` seconds for the first one."""
        end = time.monotonic() + wait
        with self._changed:
            while len(self._writes) <= start and (left := end - time.monotonic()) > 0:
                self._changed.wait(left)
            return self._writes[start : start + limit]

    def __len__(self) -> int:
        return len(self._writes)
