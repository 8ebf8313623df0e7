"""Metaranges that this process has read: what they name never changes, so they are known by their ids alone.

That one is remembered says nothing of what any destination holds now.
"""

from __future__ import annotations

import functools
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from core.mirroring.object_check import Reason, Verdict
from deployment import config
from graveler.metarange import RangeRef, read_metarange

METADATA_PREFIX = "_lakefs"


@dataclass(frozen=True, slots=True)
class Found:
    """A metarange's ranges with its file's size and MD5, or the reason (of core.mirroring.object_check) why there are
    none."""

    ranges: tuple[RangeRef, ...] = ()
    reason: str = ""
    detail: str = ""
    size: int = 0
    md5: str = ""

    @property
    def verdict(self) -> Verdict:
        """As the look at an object tells it."""
        return (Reason(self.reason), self.detail) if self.reason else None


class MetarangeCache:
    """Least recently used metaranges of all mirrors. Bounds: how many, how many ranges they name, and their age."""

    def __init__(
        self, *, metaranges: int, ranges: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._metaranges: OrderedDict[str, tuple[Found, float]] = OrderedDict()
        self._ranges = 0
        self._most_metaranges, self._most_ranges, self._seconds = metaranges, ranges, seconds
        self._clock = clock
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._metaranges.clear()
            self._ranges = 0

    def get(self, key: str) -> Found | None:
        """What is known; None when that is nothing, or too old."""
        with self._lock:
            metarange, read_at = self._metaranges.get(key, (None, 0.0))
            if metarange is None or self._clock() - read_at >= self._seconds:
                return None
            self._metaranges.move_to_end(key)
            return metarange

    def put(self, key: str, metarange: Found) -> None:
        """Remember what was just read."""
        with self._lock:
            if key in self._metaranges:
                self._drop(key)
            self._metaranges[key] = (metarange, self._clock())
            self._ranges += len(metarange.ranges)
            while len(self._metaranges) > 1 and self._is_too_large():
                self._drop(next(iter(self._metaranges)))

    def _is_too_large(self) -> bool:
        return len(self._metaranges) > self._most_metaranges or self._ranges > self._most_ranges

    def _drop(self, key: str) -> None:
        metarange, _ = self._metaranges.pop(key)
        self._ranges -= len(metarange.ranges)


@functools.cache
def remembered() -> MetarangeCache:
    """This process's memory of metaranges, as large as the configuration says."""
    settings = config.current().validator
    return MetarangeCache(
        metaranges=settings.metarange_presence_cache.size,
        ranges=settings.range_presence_cache.size,
        seconds=settings.metarange_presence_cache.expiry.total_seconds(),
    )


def parse(data: bytes, metarange_id: str, file: str) -> Found:
    """A metarange from its bytes. Raises FormatError unless they give its id."""
    ranges = tuple(read_metarange(data, expected_id=metarange_id, file=file))
    return Found(ranges, size=len(data), md5=hashlib.md5(data, usedforsecurity=False).hexdigest())
