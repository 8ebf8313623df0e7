"""What lies in a mirror's namespace, less what kept ranges name, less what the source still has.

Nothing is deleted here, and nothing may be left out of what ranges name: who can't read one fails the job as a whole.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from core.errors import LakeMirrorError, NotFound, RemoteFailure
from core.sweeping import METADATA, is_swept, named_below
from core.types import ObjectInfo
from graveler.columns import is_full
from graveler.errors import FormatError
from graveler.ranges import read_range_columns
from spark_jobs.check.settings import StoreLocation, store_at
from spark_jobs.tasks import ahead, failed_row, spread, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SWEEP_COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("address", pa.string()),
        ("size", pa.int64()),
        ("etag", pa.string()),
        ("objects", pa.int64()),
        ("bytes", pa.int64()),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)
"""kind 'object': nobody names it, and the source has it no more. 'part': so many `objects` of so many `bytes` were
listed in a stretch; each gives one such row. 'failed': a task had to give up, `reason` is the class of core.errors."""
STRETCH_COLUMNS = pa.schema([("after", pa.string()), ("until", pa.string())])
RANGE_COLUMNS = pa.schema([("range_id", pa.string())])
NAMED_COLUMNS = pa.schema([("address", pa.string())])

Stretch = tuple[str, str]
"""Keys after the first one up to the second one, relative to the namespace; "" is no bound."""
LISTED_AT_ONCE = 1000
RANGES_PER_TASK = 64
THREADS = 16


class Listed(Protocol):
    """A page of a listing: adapters/s3/fast_store.py."""

    keys: list[str]
    sizes: list[int]
    etags: list[str]
    more: bool


class SweptStore(Protocol):
    """What a sweep asks of a store."""

    def get(self, uri: str) -> bytes: ...  # NotFound
    def head(self, uri: str) -> ObjectInfo | None: ...  # None: a definite 404
    def page(self, prefix_uri: str, after: str = "") -> Any: ...  # Listed


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """The two namespaces, and how hard to try."""

    here: StoreLocation
    source: StoreLocation
    tries: int = 4


# --- with Spark -----------------------------------------------------------------------------------------------------


def sweep(
    spark: SparkSession, work: Sequence[Stretch], *, range_ids: Sequence[str], settings: SweepSettings
) -> DataFrame:
    """Rows of SWEEP_COLUMNS for stretches of the namespace. Lazy, like every DataFrame."""
    listed = spread(spark, [[one] for one in work], STRETCH_COLUMNS).mapInArrow(
        functools.partial(_listed_task, settings=settings), sql_type(SWEEP_COLUMNS)
    )
    parts = [range_ids[at : at + RANGES_PER_TASK] for at in range(0, len(range_ids), RANGES_PER_TASK)]
    if parts:
        named = spread(spark, [[(one,) for one in part] for part in parts], RANGE_COLUMNS).mapInArrow(
            functools.partial(_named_task, settings=settings), sql_type(NAMED_COLUMNS)
        )
        listed = listed.join(named, "address", "left_anti").select(*SWEEP_COLUMNS.names)
    return listed.mapInArrow(functools.partial(_gone_task, settings=settings), sql_type(SWEEP_COLUMNS))


def _listed_task(batches: Iterable[pa.RecordBatch], settings: SweepSettings) -> Iterator[pa.RecordBatch]:
    store = _store(settings.here, settings)
    for batch in batches:
        for row in batch.to_pylist():
            try:
                yield from list_stretch(store, settings.here.namespace, (row["after"], row["until"]))
            except LakeMirrorError as error:
                yield _to_batch([failed_row(error, settings.here.region)])


def _named_task(batches: Iterable[pa.RecordBatch], settings: SweepSettings) -> Iterator[pa.RecordBatch]:
    """Raises what keeps it from reading a range: no row could tell of that, for these rows are only joined."""
    stores = _store(settings.here, settings), _store(settings.source, settings)
    ids = [row["range_id"] for batch in batches for row in batch.to_pylist()]
    for addresses in ahead(ids, functools.partial(named_by, stores, settings)):
        yield pa.RecordBatch.from_arrays([addresses], schema=NAMED_COLUMNS)


def _gone_task(batches: Iterable[pa.RecordBatch], settings: SweepSettings) -> Iterator[pa.RecordBatch]:
    store = _store(settings.source, settings)
    with ThreadPoolExecutor(THREADS) as pool:
        for batch in batches:
            try:
                yield gone_of(store, settings.source.namespace, batch, pool)
            except LakeMirrorError as error:
                yield _to_batch([failed_row(error, settings.source.region)])


def _store(place: StoreLocation, settings: SweepSettings) -> SweptStore:
    return store_at(place, settings.tries, THREADS + 4)


# --- anywhere -------------------------------------------------------------------------------------------------------


def sweep_here(
    work: Sequence[Stretch], range_ids: Sequence[str], settings: SweepSettings, here: SweptStore, source: SweptStore
) -> Iterator[pa.RecordBatch]:
    """The same rows from this process. Raises what Spark's tasks tell in 'failed' rows."""
    with ThreadPoolExecutor(THREADS) as pool:
        read = functools.partial(named_by, (here, source), settings)
        named = {address for part in pool.map(read, range_ids) for address in part.to_pylist()}
        for stretch in work:
            for batch in list_stretch(here, settings.here.namespace, stretch):
                unnamed = [row for row in batch.to_pylist() if row["address"] not in named]
                yield gone_of(source, settings.source.namespace, _to_batch(unnamed), pool)


def list_stretch(store: SweptStore, namespace: str, stretch: Stretch) -> Iterator[pa.RecordBatch]:
    """The objects of a stretch, and at its end how many they were."""
    prefix = f"{namespace.rstrip('/')}/"
    skipped = len(prefix.split("/", 3)[3])
    (after, until), objects, size, more = stretch, 0, 0, True
    while more:
        page = store.page(prefix, prefix.split("/", 3)[3] + after if after else "")
        if page.more and not page.keys:
            raise RemoteFailure(f"an empty page of a listing of {prefix}")
        rows = [
            {"kind": "object", "address": key[skipped:], "size": length, "etag": etag}
            for key, length, etag in zip(page.keys, page.sizes, page.etags, strict=True)
            if is_swept(key[skipped:]) and (not until or key[skipped:] <= until)
        ]
        objects, size = objects + len(rows), size + sum(row["size"] for row in rows)
        yield _to_batch(rows)
        after = page.keys[-1][skipped:] if page.keys else ""
        more = page.more and (not until or after < until)
    yield _to_batch([{"kind": "part", "objects": objects, "bytes": size}])


def named_by(stores: tuple[SweptStore, SweptStore], settings: SweepSettings, range_id: str) -> pa.Array:
    """The addresses below the namespace that a range names, as either side has its file. Raises what keeps it from
    reading it."""
    places = (settings.here.namespace, settings.source.namespace)
    for store, namespace in zip(stores, places, strict=True):
        uri = f"{namespace.rstrip('/')}/{METADATA}{range_id}"
        try:
            columns = read_range_columns(store.get(uri), expected_id=range_id, file=uri)
        except (NotFound, FormatError):
            continue
        return _below(columns, places)
    raise RemoteFailure(f"the range {range_id} can't be read at either side: nobody knows what it names")


def _below(columns: pa.RecordBatch, places: tuple[str, str]) -> pa.Array:
    """With those of entries that have a URI of their own, and lie below one of the namespaces by it."""
    full = is_full(columns)
    own = columns.column("address").filter(pc.invert(full))
    imported = columns.column("address").filter(full).to_pylist()
    named = {address for one in imported for place in places for address in named_below(place, one)}
    return pa.concat_arrays([own.cast(pa.string()), pa.array(sorted(named), pa.string())])


def gone_of(store: SweptStore, namespace: str, batch: pa.RecordBatch, pool: ThreadPoolExecutor) -> pa.RecordBatch:
    """Of the objects in rows of SWEEP_COLUMNS those that the source answers a definite 404 for; other rows as they
    are."""
    rows = batch.to_pylist()
    objects = [row for row in rows if row["kind"] == "object"]
    uris = [f"{namespace.rstrip('/')}/{row['address']}" for row in objects]
    gone = [row for row, info in zip(objects, pool.map(store.head, uris), strict=True) if info is None]
    return _to_batch([*gone, *(row for row in rows if row["kind"] != "object")])


def _to_batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=SWEEP_COLUMNS)
