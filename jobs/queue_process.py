"""django-q's queue between processes, of which any may be killed at any moment.

multiprocessing's own waits for a message with the readers' lock in hand: when that process is killed, its cluster
still runs, but nobody in it ever hears of a message again.
"""

from __future__ import annotations

import time
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
