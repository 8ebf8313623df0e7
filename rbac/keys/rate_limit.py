"""How many requests a key may make: a bucket of tokens for each, in the memory of this process.

A bucket holds `burst` tokens and is refilled at a steady pace; a request takes one. Nothing is written, so each web
process counts for itself: with n of them a key gets up to n times as much.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from rest_framework.exceptions import APIException

from deployment import config


class TooMany(APIException):
    """429: the caller has to wait for `wait` seconds."""

    status_code = 429

    def __init__(self, message: str, wait: float) -> None:
        self.wait = max(1, math.ceil(wait))
        super().__init__(f"{message}: try again in {self.wait} s")


MOST = 10_000
"""Keys that are counted at a time: those that were used longest ago are forgotten first."""


class Buckets:
    """Tokens by key."""

    def __init__(self, *, per_second: int, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._pace, self._burst, self._clock = per_second, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: str) -> float:
        """The seconds until the key may ask again; 0 when it may now, and a token is taken."""
        with self._lock:
            now = self._clock()
            tokens, at = self._buckets.get(key, (float(self._burst), now))
            tokens = min(self._burst, tokens + (now - at) * self._pace)
            allowed = tokens >= 1
            self._keep(key, tokens - allowed, now)
        return 0.0 if allowed else (1 - tokens) / self._pace

    def _keep(self, key: str, tokens: float, now: float) -> None:
        self._buckets[key] = tokens, now
        self._buckets.move_to_end(key)
        if len(self._buckets) > MOST:
            self._buckets.popitem(last=False)


@functools.cache
def shared() -> Buckets | None:
    """This process's buckets; None when the configuration sets no limit."""
    limit = config.current().auth.rate_limit
    if not limit.requests_per_second:
        return None
    return Buckets(per_second=limit.requests_per_second, burst=limit.burst)
