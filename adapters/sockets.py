"""Connections to hosts that users name, and never to our own network unless that is allowed.

A host is looked up once, and the address that was checked is the one that is connected to: a name can't lead elsewhere
in between. A connection can be given up from another thread, so that a whole exchange has one limit of time.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import Denied
from core.notifications.addresses import PRIVATE_HINT, is_public


class Limit:
    """Ends an exchange that takes too long: the socket that it is told to `watch` is shut down then."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._sock: socket.socket | None = None

    def watch(self, sock: socket.socket) -> None:
        """From here on this one. Raises TimeoutError if the time is over already."""
        self._sock = sock
        self.check()

    def check(self) -> None:
        """Raises TimeoutError if the time is over."""
        self.seconds_left()

    def seconds_left(self) -> float:
        """Of the time for all of it, however many addresses a host has. Raises TimeoutError when it is over."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def end(self) -> None:
        """From another thread: whatever is waited for ends with an error."""
        sock = self._sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it has ended by itself


@contextmanager
def limit(seconds: float) -> Iterator[Limit]:
    """A limit for what is done inside."""
    made = Limit(seconds)
    watchdog = threading.Timer(seconds, made.end)
    watchdog.start()
    try:
        yield made
    finally:
        watchdog.cancel()


def connect(host: str, port: int, *, private: bool, until: Limit) -> socket.socket:
    """A connection to one of the addresses of a host that may be connected to. Raises Denied where it has only private
    ones, and OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    allowed = [one for one in found if private or is_public(str(one[4][0]))]
    if not allowed:
        raise Denied(f"{host} resolves to {found[0][4][0]}, an address of a private network", hint=PRIVATE_HINT)
    problem: OSError | None = None
    for family, kind, protocol, _, address in allowed:
        left = until.seconds_left()
        sock = socket.socket(family, kind, protocol)
        sock.settimeout(left)
        try:
            until.watch(sock)
            sock.connect(address)
            return sock
        except OSError as error:
            sock.close()
            problem = error
    raise problem or TimeoutError()


def word(error: Exception) -> str:
    """Why it broke off, in a few words."""
    if isinstance(error, TimeoutError):
        return "it took too long"
    return str(getattr(error, "strerror", None) or type(error).__name__)
