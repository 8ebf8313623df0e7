"""The `verify` job of an export: whole units of a commit in, for each a row of how the destination differs from it.

Nothing is written. The destination is listed page by page along the unit's entries, so that no more than one page of
it is in memory, however many objects of others lie there. What the deadline leaves over begins after `upto`.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from adapters.s3.copier import Copier, is_of
from adapters.s3.fast_store import FastObjectStore, ListedPage
from adapters.s3.store import split_uri
from core.errors import NotFound
from core.exporting.deadline import Deadline, Late, Rate
from core.exporting.markers import is_marker
from core.exporting.unit_planning import Unit
from core.exporting.unit_values import UnitWork
from core.types import ObjectInfo
from spark_jobs.export.compare import before, page_after
from spark_jobs.export.plan import NOTHING, RangeShelf, clipped, tagged
from spark_jobs.export.settings import ExportSettings, copier_of, destination_store, source_store
from spark_jobs.export.unit_tasks import deal_out, run_task
from spark_jobs.tasks import ahead, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT_ONCE = 4
MOST_TOLD = 1000
COUNTS = ("equal", "bytes", "missing", "different", "foreign")
DRIFT = pa.struct(
    [
        ("key", pa.binary()),
        ("kind", pa.string()),
        ("size", pa.int64()),
        ("etag", pa.string()),
        ("there_size", pa.int64()),
        ("there_etag", pa.string()),
    ]
)
VERIFY_COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("unit", pa.int64()),
        *((name, pa.int64()) for name in COUNTS),
        ("drift", pa.list_(DRIFT)),
        ("requests", pa.int64()),
        ("done", pa.bool_()),
        ("upto", pa.binary()),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)
"""kind 'unit': what was seen of it. `bytes` of the equal ones; `drift` names the first MOST_TOLD of a unit, of kind
'missing', 'different' or 'foreign'. Unless it is `done`, all keys up to `upto`, that one too, are in the counts (null:
none yet). 'failed' (in DataFrames only): a task had to give up, `reason` is the class of core.errors."""


def verify(spark: SparkSession, work: Sequence[UnitWork], settings: ExportSettings) -> DataFrame:
    """Rows of VERIFY_COLUMNS for these units. Lazy, like every DataFrame."""
    frame = deal_out(spark, work, settings.tasks)
    shared = settings.shared(len(work))
    task = functools.partial(run_task, do=verify_units, columns=VERIFY_COLUMNS, settings=shared)
    return frame.mapInArrow(task, sql_type(VERIFY_COLUMNS))


def verify_units(work: Iterable[UnitWork], settings: ExportSettings) -> Iterator[pa.RecordBatch]:
    """Rows of VERIFY_COLUMNS, in this process, each as soon as it is known. Raises what the stores raise, Corrupt for a
    damaged range."""
    stores = {source_store(settings), destination_store(settings)}
    counted = sum(store.requests for store in stores)
    with closing(copier_of(settings)) as copier, ThreadPoolExecutor(settings.threads) as pool:
        look = _Look(settings, copier, pool)
        at_once = 1 if settings.objects_per_second else AT_ONCE
        for unit_work, seen in ahead(work, lambda unit_work: (unit_work, look.at(unit_work.unit)), at_once):
            now = sum(store.requests for store in stores)
            row = {"kind": "unit", "unit": unit_work.number, **seen.columns(), "requests": now - counted}
            counted = now
            yield pa.RecordBatch.from_pylist([row], schema=VERIFY_COLUMNS)


@dataclass(slots=True)
class _Seen:
    """What is known of a unit so far."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    drift: list[Mapping[str, Any]] = field(default_factory=list)
    done: bool = False
    upto: bytes | None = None

    def columns(self) -> Mapping[str, Any]:
        """As columns."""
        return {**self.counts, "drift": self.drift, "done": self.done, "upto": self.upto}

    def differs(self, kind: str, key: bytes, entry: Mapping[str, Any] | None, info: ObjectInfo | None) -> None:
        """One more that is not as it should be."""
        self.counts[kind] += 1
        if len(self.drift) < MOST_TOLD:
            size, etag = (entry["size"], entry["etag"]) if entry else (None, None)
            shown = {"there_size": info.size, "there_etag": info.etag} if info else {}
            self.drift.append({"key": key, "kind": kind, "size": size, "etag": etag, **shown})


class _Look:
    """What the units of a task share."""

    def __init__(self, settings: ExportSettings, copier: Copier, pool: ThreadPoolExecutor) -> None:
        self._settings, self._copier, self._pool = settings, copier, pool
        self._shelf = RangeShelf(source_store(settings), settings)
        self._store, self._deadline = destination_store(settings), Deadline(settings.deadline)
        self._rate = Rate(settings.objects_per_second)
        self._at_once = max(1, int(2 * settings.objects_per_second)) if settings.objects_per_second else 0

    def at(self, unit: Unit) -> _Seen:
        """A unit, as far as the time goes."""
        seen = _Seen()
        try:
            self._deadline.check()
            target = clipped(self._shelf.read(unit.target), unit) if unit.target else NOTHING
            entries = tagged(target, self._settings).select(["path", "size", "etag", "tag"])
            for objects, last in _pages(self._store, self._copier.destination.prefix, unit):
                stop = _up_to(entries.column("path"), last)
                self._compare_page(entries.slice(0, stop).to_pylist(), objects, seen)
                entries, seen.upto = entries.slice(stop), last
                seen.done = last is None
                self._deadline.check()
        except Late:
            pass
        return seen

    def _compare_page(
        self, entries: Sequence[Mapping[str, Any]], objects: dict[bytes, ObjectInfo], seen: _Seen
    ) -> None:
        """Where it may not go as fast as it can, some entries at a time: a slice that ends then has got on."""
        while self._at_once and len(entries) > self._at_once:
            some, entries = entries[: self._at_once], entries[self._at_once :]
            last = some[-1]["path"]
            self._compare(some, {key: objects.pop(key) for key in sorted(objects) if key <= last}, seen)
            seen.upto = last
        self._compare(entries, objects, seen)

    def _compare(self, entries: Sequence[Mapping[str, Any]], objects: dict[bytes, ObjectInfo], seen: _Seen) -> None:
        """Entries and objects of the same stretch of keys."""
        pairs = [(entry, objects.pop(entry["path"], None)) for entry in entries]
        kinds = list(self._pool.map(self._judged, pairs))
        for (entry, info), kind in zip(pairs, kinds, strict=True):
            if kind == "equal":
                seen.counts["equal"] += 1
                seen.counts["bytes"] += entry["size"]
            else:
                seen.differs(kind, entry["path"], entry, info)
        for key, info in objects.items():
            if not (is_marker(key) and not info.size):
                seen.differs("foreign", key, None, info)

    def _judged(self, pair: tuple[Mapping[str, Any], ObjectInfo | None]) -> str:
        """By the listing; where that shows another ETag, by the stamp. What neither proves is not equal."""
        entry, info = pair
        if info is None:
            return "missing"
        if info.size != entry["size"]:
            return "different"
        if is_of(info.etag, entry["tag"]):
            return "equal"
        self._deadline.pause(self._rate.turn())
        try:
            stamped = self._copier.stamp(entry["path"]) == entry["tag"]
        except NotFound:
            return "missing"
        return "equal" if stamped else "different"


def _pages(store: FastObjectStore, prefix: str, unit: Unit) -> Iterator[tuple[dict[bytes, ObjectInfo], bytes | None]]:
    """The objects of a unit's keys in pages, each with the key up to which it is complete; None on the last one."""
    beginning = split_uri(prefix)[1]
    after, more = _start(beginning, unit.low), True
    while more:
        page = page_after(store, prefix, after)
        rows = _by_key(page, len(beginning))
        last = next(reversed(rows), None)
        more = page.more and (last is None or unit.high is None or last < unit.high)
        yield {key: info for key, info in rows.items() if key and unit.holds(key)}, last if more else None
        after = page.keys[-1] if page.keys else after


def _start(beginning: str, low: bytes) -> str:
    """A key after which the unit's own come: what of `low` is no UTF-8 no object has."""
    try:
        first = beginning + low.decode()
    except UnicodeDecodeError as error:
        return beginning + low[: error.start].decode()
    return before(first) if first else ""


def _by_key(page: ListedPage, cut: int) -> dict[bytes, ObjectInfo]:
    columns = zip(page.keys, page.sizes, page.etags, strict=True)
    return {key[cut:].encode(): ObjectInfo(key, size, etag) for key, size, etag in columns}


def _up_to(path: pa.Array, last: bytes | None) -> int:
    """How many keys of these are not after `last`."""
    return len(path) if last is None else bisect_right(path, last, key=pa.BinaryScalar.as_py)
