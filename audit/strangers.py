"""Refusals of strangers, who cost the database no write each, and nobody else's request any: every process gathers
them, and a thread of its own writes them some seconds later.

A process that ends writes what it has; one that is killed loses it.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping

from django.db import DatabaseError, connection

from audit import refusals
from web import requests

log = logging.getLogger("lakemirror.audit")

GATHER_SECONDS = 10.0
MOST = 200
"""So many kinds and networks are told apart until they are written; all others of a kind count as one."""
_lock = threading.Lock()
_gathered: Counter[tuple[str, str]] = Counter()
_writer: threading.Timer | None = None


def refused(kind: str) -> None:
    """Who asks by the request that is being answered was refused."""
    network = requests.network(requests.address(requests.current()))
    with _lock:
        _add(kind, network, 1)
    _write_soon()


def write() -> None:
    """Write down what was gathered. What the database doesn't take is kept."""
    with _lock:
        taken = dict(_gathered)
        _gathered.clear()
    try:
        for key in list(taken):
            refusals.count_stranger(*key, taken[key])
            del taken[key]
    except DatabaseError as error:
        log.warning("refusals of strangers could not be written down yet: %s", error)
        _keep(taken)


def _keep(taken: Mapping[tuple[str, str], int]) -> None:
    """With what was gathered meanwhile, and still no more told apart than MOST."""
    with _lock:
        for (kind, network), times in taken.items():
            _add(kind, network, times)


def _add(kind: str, network: str, times: int) -> None:
    known = (kind, network) in _gathered or len(_gathered) < MOST
    _gathered[kind, network if known else refusals.OTHERS] += times


def _write_soon() -> None:
    global _writer
    if not GATHER_SECONDS:
        return write()
    with _lock:
        if _writer is None:
            _writer = threading.Timer(GATHER_SECONDS, _write_beside)
            _writer.daemon = True
            _writer.start()
    return None


def _write_beside() -> None:
    global _writer
    with _lock:
        _writer = None
    try:
        write()
    finally:
        connection.close()
    if _gathered:
        _write_soon()
