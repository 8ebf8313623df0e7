"""Metaranges as the destination holds them, verified by id; kept in memory since they never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from core.errors import NotFound
from core.ports import ObjectStore
from graveler.errors import FormatError
from graveler.metarange import RangeRef, read_metarange
from lakemirror_site import wiring
from mirrors.models import Mirror

METADATA_PREFIX = "_lakefs"
_KEPT_RANGES = 500_000


@dataclass(frozen=True, slots=True)
class Found:
    """A metarange's ranges, or the reason ("missing", "damaged") why there are none."""

    ranges: tuple[RangeRef, ...] = ()
    reason: str = ""
    detail: str = ""


class MetarangeCache:
    """Least recently used metaranges of all mirrors, bounded by the number of ranges that they name."""

    def __init__(self, kept_ranges: int = _KEPT_RANGES) -> None:
        self._found: OrderedDict[tuple[int, str], Found] = OrderedDict()
        self._ranges = 0
        self._kept = kept_ranges
        self._lock = threading.Lock()

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._found.clear()
            self._ranges = 0

    def get(self, key: tuple[int, str]) -> Found | None:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: tuple[int, str], found: Found) -> None:
        with self._lock:
            if key not in self._found:
                self._ranges += len(found.ranges) + 1
            self._found[key] = found
            while self._ranges > self._kept and len(self._found) > 1:
                _, dropped = self._found.popitem(last=False)
                self._ranges -= len(dropped.ranges) + 1


cache = MetarangeCache()


def metadata_uri(namespace: str, metadata_id: str) -> str:
    """Where a namespace keeps a metarange or range."""
    return f"{namespace}/{METADATA_PREFIX}/{metadata_id}"


def load_metaranges(mirror: Mirror, ids: Iterable[str], workers: int = 8) -> dict[str, Found]:
    """The metaranges of `ids` as they stand at a mirror's destination. Only whole and right ones are remembered.

    A store that can't be asked raises (Unreachable, Denied...): that is not "missing".
    """
    store, namespace = wiring.objects(mirror.region), mirror.storage_namespace
    found = {i: cached for i in set(ids) if (cached := cache.get((mirror.pk, i)))}
    asked = [i for i in set(ids) if i not in found]
    with ThreadPoolExecutor(max_workers=max(1, min(workers, len(asked)))) as pool:
        for metarange_id, result in zip(asked, pool.map(lambda i: _load(store, namespace, i), asked), strict=True):
            found[metarange_id] = result
            if not result.reason:
                cache.put((mirror.pk, metarange_id), result)
    return found


def _load(store: ObjectStore, namespace: str, metarange_id: str) -> Found:
    if not metarange_id:
        return Found()
    uri = metadata_uri(namespace, metarange_id)
    try:
        return Found(tuple(read_metarange(store.get(uri), expected_id=metarange_id, file=uri)))
    except NotFound:
        return Found(reason="missing", detail=f"{uri} has not arrived")
    except FormatError as error:
        return Found(reason="damaged", detail=str(error))
