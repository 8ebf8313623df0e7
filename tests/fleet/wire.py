"""Calls of the fleet's processes to the stand-ins: pickled, over a Unix socket, a connection per thread."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

from core.errors import LakeMirrorError, Unreachable


@dataclass(frozen=True, slots=True)
class Lease:
    """What a caller holds at the time of its call."""

    kind: str
    subject: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Call:
    """One call: who (the region of its deployment; "" for who only looks), holding what, to what, and what of it."""

    deployment: str
    lease: Lease | None
    target: str
    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]


class Cut(Exception):
    """The connection is closed in place of an answer."""


class Broken(Exception):
    """The server itself is at fault."""


# --- the server's side


def serve(address: str, handle: Callable[[Call], Any]) -> None:
    """Answer calls for ever, those of each connection in their order."""
    with Listener(address, "AF_UNIX", backlog=128) as listener:
        while True:
            threading.Thread(target=_converse, args=(listener.accept(), handle), daemon=True).start()


def _converse(connection: Connection[Any, Call], handle: Callable[[Call], Any]) -> None:
    with connection:
        while True:
            try:
                connection.send(_answer(connection.recv(), handle))
            except (Cut, EOFError, OSError):
                return


def _answer(call: Call, handle: Callable[[Call], Any]) -> Any:
    try:
        return handle(call)
    except LakeMirrorError as error:
        return error
    except Cut:
        raise
    except Exception:
        return Broken(traceback.format_exc())


# --- the callers' side

_mine = threading.local()


def _connection(address: str) -> Connection[Any, Any]:
    """This thread's own; a process that was forked off makes another."""
    if getattr(_mine, "owner", None) != (os.getpid(), address):
        _mine.connection, _mine.owner = Client(address, "AF_UNIX"), (os.getpid(), address)
    found: Connection[Any, Any] = _mine.connection
    return found


class Remote:
    """Something in the server: its methods, as if it were here. Raises Unreachable when a connection is cut."""

    def __init__(
        self, address: str, target: str, deployment: str = "", lease: Callable[[], Lease | None] = lambda: None
    ) -> None:
        self._address, self._target, self._deployment, self._lease = address, target, deployment, lease

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, /, *args: Any, **options: Any) -> Any:
        call = Call(self._deployment, self._lease(), self._target, name, args, options)
        try:
            connection = _connection(self._address)
            connection.send(call)
            answer = connection.recv()
        except (EOFError, OSError) as error:
            _mine.owner = None
            raise Unreachable(f"{self._target} was cut off during {name}") from error
        if isinstance(answer, Exception):
            raise answer
        return answer
