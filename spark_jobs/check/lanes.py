"""Threads for two kinds of work, of which the long one never keeps the short one waiting, nor the other way round."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

R = TypeVar("R")

LARGE_SHARE = 4
"""While small ones wait, one in so many threads is for large ones; of fewer threads none is, until no small one
waits."""


class Lanes:
    """Runs small and large pieces of work in so many threads, each lane's in the order in which they came.

    Large ones have their share of the threads, and all that small ones leave over.
    """

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers)
        self._share, self._large_running = workers // LARGE_SHARE, 0
        self._small, self._large = deque[Callable[[], None]](), deque[Callable[[], None]]()
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], R], *, large: bool) -> Future[R]:
        """Has it done; what it gives or raises is the future's."""
        future: Future[R] = Future()
        with self._lock:
            (self._large if large else self._small).append(lambda: _carry_out(work, future))
        self._pool.submit(self._next)  # as many turns as there are pieces
        return future

    def close(self) -> None:
        """Waits for all of them."""
        self._pool.shutdown()

    def _next(self) -> None:
        with self._lock:
            large = bool(self._large) and (not self._small or self._large_running < self._share)
            work = (self._large if large else self._small).popleft()
            self._large_running += large
        try:
            work()
        finally:
            with self._lock:
                self._large_running -= large


def _carry_out(work: Callable[[], R], future: Future[Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # whoever waits for it is told
        future.set_exception(error)
