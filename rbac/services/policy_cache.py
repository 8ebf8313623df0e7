"""Policies of users, reused for a while by one process when `auth.cache.enabled` says so.

Saves the one query of a request for its user's policies; whether a user is active, and keys, are always asked of the
database. A change of policies by this process counts at once, one by another process after `ttl` plus at most `jitter`.
"""

from __future__ import annotations

import functools
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from django.db import connection

from core.access.policies import Policy
from deployment import config

Policies = tuple[Policy, ...]


class PolicyCache:
    """Least recently asked users' policies, at most `size`, each for `ttl` and a random part of `jitter` seconds."""

    def __init__(self, *, size: int, ttl: float, jitter: float) -> None:
        self._size, self._ttl, self._jitter = size, ttl, jitter
        self._entries: OrderedDict[int, tuple[Policies, float]] = OrderedDict()
        self._changes = 0
        self._lock = threading.Lock()

    def of(self, user_id: int, read: Callable[[], Policies]) -> Policies:
        """The policies of a user: those kept, else what `read` gives.

        Not inside of a transaction: what is read there may never come true.
        """
        if connection.in_atomic_block:
            return read()
        with self._lock:
            policies, ends_at = self._entries.get(user_id, ((), 0.0))
            if time.monotonic() < ends_at:
                self._entries.move_to_end(user_id)
                return policies
            changes = self._changes
        policies = read()
        self._keep(user_id, policies, changes)
        return policies

    def _keep(self, user_id: int, policies: Policies, changes: int) -> None:
        """Unless something changed since they were read: they may be older than that."""
        with self._lock:
            if changes != self._changes:
                return
            self._entries[user_id] = (policies, time.monotonic() + self._ttl + random.uniform(0, self._jitter))
            self._entries.move_to_end(user_id)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Something about policies has changed."""
        with self._lock:
            self._entries.clear()
            self._changes += 1


@functools.cache
def shared() -> PolicyCache | None:
    """This process's cache; None when the configuration wants none."""
    settings = config.current().auth.cache
    if not settings.enabled:
        return None
    return PolicyCache(size=settings.size, ttl=settings.ttl.total_seconds(), jitter=settings.jitter.total_seconds())
