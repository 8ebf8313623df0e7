"""Refusals of strangers, who cost the database no write each: every process gathers them for some seconds.

What a process has gathered is written by its next request after that time, and when it ends; one that is killed loses
it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

from django.db import DatabaseError

from audit import refusals
from web import requests

log = logging.getLogger("lakemirror.audit")

GATHER_SECONDS = 10.0
_MOST = 1000
"""So many kinds and networks are told apart until they are written; all others count as one."""
_lock = threading.Lock()
_gathered: Counter[tuple[str, str]] = Counter()
_written_at = float("-inf")


def refused(kind: str) -> None:
    """Who asks by the request that is being answered was refused."""
    network = requests.network(requests.address(requests.current()))
    with _lock:
        known = (kind, network) in _gathered or len(_gathered) < _MOST
        _gathered[kind, network if known else refusals.OTHERS] += 1


def write(after: float = 0.0) -> None:
    """Write down what was gathered, unless that was done less than `after` seconds ago. What the database doesn't take
    is kept."""
    global _written_at
    with _lock:
        if not _gathered or time.monotonic() - _written_at < after:
            return
        _written_at = time.monotonic()
        taken = dict(_gathered)
        _gathered.clear()
    while taken:
        (kind, network), times = taken.popitem()
        try:
            refusals.count_stranger(kind, network, times)
        except DatabaseError as error:
            log.warning("refusals of strangers could not be written down yet: %s", error)
            with _lock:
                _gathered.update(taken | {(kind, network): times})
            return
