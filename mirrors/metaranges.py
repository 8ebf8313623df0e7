"""Metaranges as the destination holds them, verified by id; kept in memory since they never change."""

from __future__ import annotations

import functools
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from adapters.local_cache import LocalCache
from core.errors import LakeMirrorError, NotFound
from core.ports import ObjectStore
from core.presence import Depth, Reason, Verdict, judge_object
from graveler.errors import FormatError
from graveler.metarange import RangeRef, read_metarange
from lakemirror_site import config, wiring
from mirrors.blockers import Problem
from mirrors.models import Blocker, Mirror

METADATA_PREFIX = "_lakefs"


@dataclass(frozen=True, slots=True)
class Found:
    """A metarange's ranges, or the reason ("missing", "damaged") why there are none."""

    ranges: tuple[RangeRef, ...] = ()
    reason: str = ""
    detail: str = ""

    @property
    def verdict(self) -> Verdict:
        """As the look at an object tells it."""
        reasons = {"missing": Reason.METARANGE_MISSING, "damaged": Reason.METARANGE_DAMAGED}
        return (reasons[self.reason], self.detail) if self.reason else None

    def problem(self, metarange_id: str, *, damage: bool = False) -> Problem | None:
        """What stands in the way of a metarange's commits; `damage`: it had been there and right."""
        if self.verdict is None:
            return None
        reason, detail = self.verdict
        address = f"{METADATA_PREFIX}/{metarange_id}"
        return Problem(Blocker.Kind.METARANGE, metarange_id, address, reason, detail=detail, damage=damage)


class MetarangeCache:
    """Least recently used metaranges of all mirrors. Bounds: how many, how many ranges they name, and their age."""

    def __init__(
        self, *, metaranges: int, ranges: int, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._found: OrderedDict[tuple[int, str], tuple[Found, float]] = OrderedDict()
        self._ranges = 0
        self._most_metaranges, self._most_ranges, self._seconds = metaranges, ranges, seconds
        self._clock = clock
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._found.clear()
            self._ranges = 0

    def get(self, key: tuple[int, str]) -> Found | None:
        """What is known; None when that is nothing, or too old."""
        with self._lock:
            found, read_at = self._found.get(key, (None, 0.0))
            if found is None or self._clock() - read_at >= self._seconds:
                return None
            self._found.move_to_end(key)
            return found

    def put(self, key: tuple[int, str], found: Found) -> None:
        """Remember what was just read."""
        with self._lock:
            if key in self._found:
                self._drop(key)
            self._found[key] = (found, self._clock())
            self._ranges += len(found.ranges)
            while len(self._found) > 1 and self._is_too_large():
                self._drop(next(iter(self._found)))

    def _is_too_large(self) -> bool:
        return len(self._found) > self._most_metaranges or self._ranges > self._most_ranges

    def _drop(self, key: tuple[int, str]) -> None:
        found, _ = self._found.pop(key)
        self._ranges -= len(found.ranges)


@functools.cache
def remembered() -> MetarangeCache:
    """This process's memory of metaranges, as large as the configuration says."""
    settings = config.current().validator
    return MetarangeCache(
        metaranges=settings.metarange_presence_cache.size,
        ranges=settings.range_presence_cache.size,
        seconds=settings.metarange_presence_cache.expiry.total_seconds(),
    )


def metadata_uri(namespace: str, metadata_id: str) -> str:
    """Where a namespace keeps a metarange or range."""
    return f"{namespace}/{METADATA_PREFIX}/{metadata_id}"


def read_afresh(mirror: Mirror, metarange_id: str) -> Found:
    """A metarange from the destination's bytes alone, whatever is remembered of it."""
    uri = metadata_uri(mirror.storage_namespace, metarange_id)
    return _tell(lambda: _fetch(wiring.objects(mirror.region), uri, metarange_id, wiring.local_cache()), uri)


def ranges_named(mirror: Mirror, metarange_id: str) -> tuple[RangeRef, ...] | None:
    """The ranges that a metarange names, from wherever it is at hand: its id pins them. None when it is nowhere.

    It says nothing of what the destination holds now.
    """
    if not metarange_id:
        return ()
    cached = remembered().get((mirror.pk, metarange_id))
    if cached:
        return cached.ranges
    uri, on_disk = metadata_uri(mirror.storage_namespace, metarange_id), wiring.local_cache()
    try:
        data = on_disk.get(metarange_id) or wiring.objects(mirror.region).get(uri)
        return tuple(read_metarange(data, expected_id=metarange_id, file=uri))
    except (LakeMirrorError, FormatError):
        return None


def load_metaranges(mirror: Mirror, ids: Iterable[str], workers: int = 8) -> dict[str, Found]:
    """The metaranges of `ids` as they stand at a mirror's destination. Only whole and right ones are remembered.

    What is known to be lost or damaged since is not taken from memory. A store that can't be asked raises (Unreachable,
    Denied...): that is not "missing".
    """
    store, namespace, cache = wiring.objects(mirror.region), mirror.storage_namespace, remembered()
    lost = set(mirror.blockers.filter(kind=Blocker.Kind.METARANGE).values_list("holder_id", flat=True))
    found = {i: cached for i in set(ids) - lost if (cached := cache.get((mirror.pk, i)))}
    asked = [i for i in set(ids) if i not in found]
    load = functools.partial(_load, store, namespace, wiring.local_cache())
    with ThreadPoolExecutor(max_workers=max(1, min(workers, len(asked)))) as pool:
        for metarange_id, result in zip(asked, pool.map(load, asked), strict=True):
            found[metarange_id] = result
            if not result.reason:
                cache.put((mirror.pk, metarange_id), result)
    return found


def _load(store: ObjectStore, namespace: str, on_disk: LocalCache, metarange_id: str) -> Found:
    if not metarange_id:
        return Found()
    uri = metadata_uri(namespace, metarange_id)
    return _tell(lambda: _kept(store, uri, metarange_id, on_disk) or _fetch(store, uri, metarange_id, on_disk), uri)


def _tell(read: Callable[[], Found], uri: str) -> Found:
    """What a reading gives, or why it gives nothing."""
    try:
        return read()
    except NotFound:
        return Found(reason="missing", detail=f"{uri} has not arrived")
    except FormatError as error:
        return Found(reason="damaged", detail=str(error))


def _kept(store: ObjectStore, uri: str, metarange_id: str, on_disk: LocalCache) -> Found | None:
    """The metarange from the local disk, if that is whole and the destination holds the very same bytes now.

    The disk tells nothing of the destination: a HEAD does. Where an ETag is no MD5 of the content (encryption by KMS,
    several parts) that can't be told, and the file is fetched.
    """
    data = on_disk.get(metarange_id)
    if data is None:
        return None
    try:
        ranges = tuple(read_metarange(data, expected_id=metarange_id, file=uri))
    except FormatError:
        return None
    there = store.head(uri)
    if there is None or not there.etag_is_content:
        return None
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    differs = judge_object(there, size=len(data), etag=digest, depth=Depth.ETAG)
    return None if differs else Found(ranges)


def _fetch(store: ObjectStore, uri: str, metarange_id: str, on_disk: LocalCache) -> Found:
    data = store.get(uri)
    ranges = tuple(read_metarange(data, expected_id=metarange_id, file=uri))
    on_disk.put(metarange_id, data)
    return Found(ranges)
