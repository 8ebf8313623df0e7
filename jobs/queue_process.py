"""What django-q's processes tell each other by, of which any may be killed at any moment.

multiprocessing's own queue waits for a message with the readers' lock in hand: when that process is killed, its cluster
still runs, but nobody in it ever hears of a message again. Its Event waits for those that it wakes: a cluster whose
processes all get SIGTERM, or whose first one gets it twice, would never end.
"""

from __future__ import annotations

import time
from multiprocessing import Pipe
from queue import Empty
from typing import Any

from django_q.queues import Queue

TURN_SECONDS = 0.001


class PatientQueue(Queue):  # type: ignore[misc]
    """Waits without the lock; takes it only while it reads a message that is there."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The next message. Raises Empty after `timeout` seconds, or at once unless it may `block`."""
        if not block or timeout is not None:
            return super().get(block, timeout)
        while True:
            self._reader.poll(None)
            try:
                return super().get(False)
            except Empty:  # another process was quicker, or is just reading
                time.sleep(TURN_SECONDS)


class LockFreeEvent:
    """multiprocessing.Event for flags that stay set: a byte in a pipe, which everybody sees and nobody takes out.

    Takes no lock and waits for nobody, so it may be set by any process, by a signal's handler, and again.
    """

    def __init__(self) -> None:
        self._seen, self._set = Pipe(duplex=False)

    def is_set(self) -> bool:
        """Whether anybody has set it."""
        return self._seen.poll()

    def set(self) -> None:
        """For good."""
        if not self.is_set():
            self._set.send_bytes(b"!")

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is set, or `timeout` seconds have passed; whether it is."""
        return self._seen.poll(timeout)
