"""The ports of a run: which, whether they are free, and when somebody answers there."""

from __future__ import annotations

import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from launcher.console import Problem


def base() -> int:
    """LAKEMIRROR_PORT_BASE, to which each port of the demo adds its own number."""
    text = os.environ.get("LAKEMIRROR_PORT_BASE") or "8000"
    if not text.isdigit() or not 1024 <= int(text) <= 65000:
        raise Problem(f"LAKEMIRROR_PORT_BASE: {text!r} is no number from 1024 to 65000")
    return int(text)


def require_free(addresses: dict[str, tuple[str, int]], *, otherwise: str = "") -> None:
    """Problem naming the first address that somebody else listens on, and what else to do than to stop that."""
    otherwise = otherwise or f"move the demo with LAKEMIRROR_PORT_BASE={base() + 1000}"
    for what, (host, port) in addresses.items():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                hint = f"stop what runs there, or {otherwise}"
                raise Problem(f"port {port} ({what}) can't be used on {host}: {error.strerror}; {hint}") from None


def listens(port: int) -> bool:
    """Does somebody accept connections there?"""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def answers(url: str) -> bool:
    """Does a page answer with 200?"""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def wait(condition: Callable[[], bool], *, seconds: float, stop: Callable[[], bool]) -> bool:
    """Ask until it is so; False after that many seconds or when stopping."""
    deadline = time.monotonic() + seconds
    while not stop() and time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False
