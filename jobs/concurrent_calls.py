"""Calls to an installation that run side by side, while the caller's thread keeps the lease and the database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from core.errors import LakeMirrorError, RemoteFailure, Unreachable
from jobs.lease import Lease

K = TypeVar("K")
R = TypeVar("R")

BEAT_SECONDS = 5.0
logger = logging.getLogger(__name__)


class SideBySide(Generic[K, R]):
    """At most `limit` calls at a time. They may use the network only: the caller alone touches the database.

    Leaving it waits for the calls that are on their way; `rest()` has their answers.
    """

    def __init__(self, limit: int, lease: Lease) -> None:
        self._limit, self._lease = limit, lease
        self._running: dict[Future[R], K] = {}
        self._threads = ThreadPoolExecutor(limit)

    def __enter__(self) -> SideBySide[K, R]:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=True)

    @property
    def idle(self) -> bool:
        """Nothing is on its way."""
        return not self._running

    @property
    def free(self) -> bool:
        """Another call may be started."""
        return len(self._running) < self._limit

    def start(self, key: K, call: Callable[..., R], *args: Any, **options: Any) -> None:
        """Send a call on its way."""
        self._running[self._threads.submit(call, *args, **options)] = key

    def answers(self) -> Iterator[tuple[K, Future[R]]]:
        """At least one answer, once it is there, with the key of its call. Raises Fenced when the lease was lost."""
        done: set[Future[R]] = set()
        while self._running and not done:
            self._lease.renew()
            done, _ = wait(self._running, timeout=BEAT_SECONDS, return_when=FIRST_COMPLETED)
        for answer in [future for future in self._running if future in done]:
            yield self._running.pop(answer), answer

    def rest(self) -> Iterator[tuple[K, R]]:
        """The good answers that nobody has taken."""
        for answer, key in self._running.items():
            if answer.done() and answer.exception() is None:
                yield key, answer.result()


class Late(Unreachable):
    """There was no answer in the time that there was for it."""


def ask_all(calls: Mapping[K, Callable[[], R]], *, limit: int, seconds: float) -> dict[K, R | LakeMirrorError]:
    """What each call gives, or why it gives nothing: within `seconds` altogether, and without a lease.

    A call that is still on its way then is left alone; its own time-outs end it. All see the caller's configuration.
    """
    threads = ThreadPoolExecutor(limit)
    running = {threads.submit(copy_context().run, call): key for key, call in calls.items()}
    done, _ = wait(running, timeout=seconds)
    threads.shutdown(wait=False, cancel_futures=True)
    late = Late(f"there was no answer within {seconds:g} s")
    return {key: _given(answer) if answer in done else late for answer, key in running.items()}


def _given(answer: Future[R]) -> R | LakeMirrorError:
    error = answer.exception()
    if error is None:
        return answer.result()
    if isinstance(error, LakeMirrorError):
        return error
    logger.error("a concurrent call failed unexpectedly", exc_info=error)
    return RemoteFailure(f"the check failed unexpectedly ({type(error).__name__}); see the log")
