"""The `check` job: is everything that ranges name at the destination? Range ids in, problems and statistics out.

Each task reads its ranges from the destination, which proves their ids (`ranges`), leaves out what covered base ranges
already name, and looks for the rest (`presence`). Runs on any Spark, by Connect too, or without one.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from core.errors import Invalid, LakeMirrorError
from core.mirroring.content_proof import Proof, Prover, Refusals, tell_notes
from core.mirroring.object_check import Depth, Reason
from spark_jobs.check.presence import BulkStore, Looker
from spark_jobs.check.ranges import KeptRanges, OpenedRange, RangeReader
from spark_jobs.check.settings import CheckSettings, source_of, store_of
from spark_jobs.tasks import ahead, error_detail, spread, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHECK_COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("range_id", pa.string()),
        ("entries", pa.int64()),
        ("bytes", pa.int64()),
        ("looked_up", pa.int64()),
        ("new_bytes", pa.int64()),
        ("s3_requests", pa.int64()),
        ("problems", pa.int64()),
        ("path", pa.binary()),
        ("address", pa.string()),
        ("size", pa.int64()),
        ("etag", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("full", pa.bool_()),
        ("min_key", pa.binary()),
        ("max_key", pa.binary()),
        ("looked", pa.binary()),
    ]
)
"""A row per finding; columns that are not of its kind are null.

kind 'problem': something is not as the range says (`reason` of core.mirroring.object_check). `full`: `address` is a URI
of its own, else it lies below the namespace, whatever it looks like.

'range': this one was looked through, its problems came before; a range without this row was not checked. `looked_up`
objects were not covered by a base, of `new_bytes` bytes. `min_key` and
`max_key` are its first and last path, b"" where there is none. `looked`: the CRC-32 of every address (as the entry has
it, in UTF-8) that was not left out on account of a base, be it looked for or barred as imported; ascending, each once,
as little-endian uint32. A range whose file can't be used has none: b"".

'failed' (in DataFrames only): a task had to give up, `reason` is the class of core.errors."""

WORK_COLUMNS = pa.schema([("range_id", pa.string()), ("base_ids", pa.list_(pa.string()))])

Work = tuple[str, Sequence[str]]
"""A range's id and those of covered ranges at the same destination: what they name needs no look."""

TASKS_WANTED = 8
RANGES_PER_TASK = 16
RANGES_AT_ONCE = 64
COLLECT_AFTER = 50_000
SMALL_LOOKS = 1000
KEPT_ENTRIES = 300_000
_KEPT = KeptRanges(KEPT_ENTRIES)
_APPEALABLE = {Reason.SIZE, Reason.ETAG}
"""What the source may overrule, by reading both objects if it has to."""


# --- with Spark ------------------------------------------------------------------------------------------------------


def check(spark: SparkSession, work: Iterable[Work] | DataFrame, settings: CheckSettings) -> DataFrame:
    """Rows of CHECK_COLUMNS for the ranges of `work` (a DataFrame: of WORK_COLUMNS). Lazy, like every DataFrame."""
    frame = work if hasattr(work, "mapInArrow") else _spread(spark, list(work), settings)
    return frame.mapInArrow(functools.partial(check_task, settings=settings), sql_type(CHECK_COLUMNS))


def _spread(spark: SparkSession, work: Sequence[Work], settings: CheckSettings) -> DataFrame:
    """A row per range: neighbours in one task, for they share listings, and each task in a partition of its own."""
    size = settings.ranges_per_task or max(1, min(RANGES_PER_TASK, -(-len(work) // TASKS_WANTED)))
    rows = [(range_id, list(base_ids)) for range_id, base_ids in work]
    return spread(spark, [rows[at : at + size] for at in range(0, len(rows), size)], WORK_COLUMNS)


def check_task(batches: Iterable[pa.RecordBatch], settings: CheckSettings) -> Iterator[pa.RecordBatch]:
    """What a Spark task does with its rows of work. A store that keeps failing ends it with one 'failed' row."""
    work = [(row["range_id"], row["base_ids"] or []) for batch in batches for row in batch.to_pylist()]
    try:
        yield from check_batch(work, settings)
    except LakeMirrorError as error:
        yield _to_batch(
            [{"kind": "failed", "reason": type(error).__name__, "detail": error_detail(error, settings.region)}]
        )


def load_task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task that gives nothing: to have run it means to have loaded this module."""
    for batch in batches:
        yield batch.slice(0, 0)


# --- anywhere --------------------------------------------------------------------------------------------------------


def check_batch(
    work: Iterable[Work], settings: CheckSettings, store: BulkStore | None = None
) -> Iterator[pa.RecordBatch]:
    """Batches of CHECK_COLUMNS for the ranges of `work`, in this process, each as soon as its ranges are through.

    Raises what concerns the store as a whole: no row says anything of a range that could not be looked through. What it
    refuses of one key is that key's problem, as long as it answers for the mirror's own descriptor.
    """
    used = store_of(settings) if store is None else store
    refusals = Refusals(used, settings.namespace)
    reader = RangeReader(used, settings, refusals)
    counted = used.requests
    with _collecting_less(), ThreadPoolExecutor(settings.threads) as pool:
        looker = _looker(used, pool, settings, refusals)
        opened = ahead(work, lambda item: reader.open(*item))
        for group in _groups(opened, settings.looked_up_at_once):
            rows = _rows(group, _look(group, looker))
            _share_requests(rows, used.requests - counted)
            counted = used.requests
            yield _to_batch(rows)


@contextmanager
def _collecting_less() -> Iterator[None]:
    """Python's collector would go through a range's rows again and again, for half of a check's time."""
    usual = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def check_small(work: Sequence[Work], settings: CheckSettings, store: BulkStore) -> list[Mapping[str, Any]] | None:
    """The same rows for work of which little is new, at once, without asking the source.

    None where that does not do: more than SMALL_LOOKS objects to look for, content to read, or an object that differs.
    """
    if settings.depth == Depth.CONTENT:
        return None
    counted, refusals = store.requests, Refusals(store, settings.namespace)
    reader = RangeReader(store, settings, refusals, _KEPT)
    opened = list(ahead(work, lambda item: reader.open(*item)))
    if sum(each.looked_up for each in opened) > SMALL_LOOKS:
        return None
    with ThreadPoolExecutor(settings.threads) as pool:
        looker = _looker(store, pool, replace(settings, source=None), refusals)
        rows = _rows(opened, _look(opened, looker))
    if any(row.get("reason") in _APPEALABLE for row in rows):
        return None
    _share_requests(rows, store.requests - counted)
    return _to_batch(rows).to_pylist()


def _looker(store: BulkStore, pool: ThreadPoolExecutor, settings: CheckSettings, refusals: Refusals) -> Looker:
    depth, prover = Depth(settings.depth), _prover(store, settings, refusals)
    if prover is None and depth is Depth.CONTENT:
        raise Invalid("content can't be proven without knowing the source")
    return Looker(store, pool, depth, settings.page_worth, refusals, prover, settings.sample, settings.sample_seed)


def _prover(store: BulkStore, settings: CheckSettings, refusals: Refusals) -> Prover | None:
    source = source_of(settings)
    if settings.source is None or source is None:
        return None
    return Prover(store, settings.namespace.rstrip("/"), source, settings.source.namespace.rstrip("/"), refusals)


def _groups(ranges: Iterable[OpenedRange], most: int) -> Iterator[list[OpenedRange]]:
    """Ranges that are looked through together."""
    group: list[OpenedRange] = []
    wanted = 0
    for opened in ranges:
        group.append(opened)
        wanted += opened.looked_up
        if wanted >= most or len(group) == RANGES_AT_ONCE:
            yield group
            group, wanted = [], 0
    if group:
        yield group


def _look(group: Sequence[OpenedRange], looker: Looker) -> list[list[dict[str, Any]]]:
    """For each range the problems that a look at the store shows; how others passed is among its notes."""
    proofs = iter(looker.proofs([expected for opened in group for expected in opened.expected()]))
    return [_problems(opened, list(islice(proofs, opened.looked_up))) for opened in group]


def _problems(opened: OpenedRange, proofs: Sequence[Proof]) -> list[dict[str, Any]]:
    opened.notes += tell_notes(proof.note for proof in proofs if proof.note)
    return [opened.problem(at, *proof.verdict) for at, proof in enumerate(proofs) if proof.verdict]


def _rows(group: Sequence[OpenedRange], looked_problems: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Each range's problems, then its own row."""
    rows: list[dict[str, Any]] = []
    for opened, problems in zip(group, looked_problems, strict=True):
        rows += opened.problems + problems
        rows.append(
            {
                "kind": "range",
                "range_id": opened.range_id,
                "entries": opened.entries,
                "bytes": opened.bytes,
                "looked_up": opened.looked_up,
                "new_bytes": opened.new_bytes,
                "problems": len(opened.problems) + len(problems),
                "detail": "; ".join(opened.notes),
                "min_key": opened.min_key,
                "max_key": opened.max_key,
                "looked": opened.looked,
            }
        )
    return rows


def _share_requests(rows: Iterable[dict[str, Any]], requests: int) -> None:
    """Requests served all ranges of a group: each range's row bears an equal share, the first one the rest."""
    ranges = [row for row in rows if row["kind"] == "range"]
    share, rest = divmod(requests, len(ranges))
    for row in ranges:
        row["s3_requests"] = share + rest
        rest = 0


def _to_batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=CHECK_COLUMNS)
