"""Two rooms for requests: merges that lakeFS wants to have held wait in one, everything else is served in the other.

All of them are threads of the web process. However many merges wait, the others have as many threads as they ever had;
and only so many threads keep a connection to the database.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db import connections

from core.holding import MOST_HELD

SERVED = 8
"""Requests that a process serves at once, and threads of it that keep their connection."""
HELD = MOST_HELD + 4
"""Merges that it may hold, and those that it is just refusing because there are so many."""
HELD_PATH = "/hooks/hold/"

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Rooms:
    """A WSGI application around another one."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._free = threading.BoundedSemaphore(SERVED)
        self._keeping: set[int] = set()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """A request for a merge goes in at once, any other when one of its threads is free."""
        if HELD_PATH in environ.get("PATH_INFO", ""):
            return _Served(self._application(environ, start_response), connections.close_all)
        self._free.acquire()
        try:
            return _Served(self._application(environ, start_response), self._leave)
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        """The first threads that came keep their connection for their next request."""
        me = threading.get_ident()
        if me in self._keeping or len(self._keeping) < SERVED:
            self._keeping.add(me)
        else:
            connections.close_all()
        self._free.release()


class _Served:
    """An answer; when it has been sent, somebody else may be served."""

    def __init__(self, answer: Iterable[bytes], leave: Callable[[], None]) -> None:
        self._answer, self._leave = answer, leave

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._answer)

    def close(self) -> None:
        """As WSGI has it: called once, however the answer ended."""
        leave, self._leave = self._leave, _nothing
        try:
            close = getattr(self._answer, "close", None)
            if close is not None:
                close()
        finally:
            leave()


def _nothing() -> None:
    """It has left already."""
