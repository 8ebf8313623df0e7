"""The `check` job: is everything that ranges name at the destination? Range ids in, problems and statistics out.

Each task reads its ranges from the destination, which proves their ids (`ranges`), leaves out what covered base ranges
already name, and looks for the rest (`presence`). Runs on any Spark, by Connect too, or without one.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from adapters.s3.store_keys import proof_key_of
from core.bringing import SMALL_BYTES
from core.errors import Invalid, LakeMirrorError
from core.mirroring.content_proof import Proof, Prover, Refusals, tell_notes
from core.mirroring.object_check import Depth, Reason
from spark_jobs.check.bring import Bringer, bring_group, lacking_bytes, mover_of
from spark_jobs.check.live_limits import following
from spark_jobs.check.presence import BulkStore, Looker
from spark_jobs.check.progress import COUNTS
from spark_jobs.check.ranges import KeptRanges, OpenedRange, RangeReader
from spark_jobs.check.settings import TASKS_WANTED, CheckSettings, source_of, store_of
from spark_jobs.tasks import ahead, failed_row, spread, sql_type

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
        ("lane", pa.string()),
        *((count, pa.int64()) for count in COUNTS),
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

'bringing' (where the check brings what is missing): what has changed in the `lane` of small or large objects since the
last such row; its COUNTS are those of `progress`. 'left': there was no time to bring all of this range; nothing is said
of it.

'failed' (not from `check_batch`): a task had to give up, `reason` is the class of core.errors."""

WORK_COLUMNS = pa.schema([("range_id", pa.string()), ("base_ids", pa.list_(pa.string()))])

Work = tuple[str, Sequence[str]]
"""A range's id and those of covered ranges at the same destination: what they name needs no look."""

OnBringing = Callable[[Sequence[Mapping[str, Any]]], None]

RANGES_PER_TASK = 16
RANGES_AT_ONCE = 64
BROUGHT_AT_ONCE = 5000
COLLECT_AFTER = 50_000
SMALL_LOOKS = 1000
KEPT_ENTRIES = 300_000
_KEPT = KeptRanges(KEPT_ENTRIES)
_APPEALABLE = {Reason.SIZE, Reason.ETAG}
"""What the source may overrule, by reading both objects if it has to."""


# --- with Spark ------------------------------------------------------------------------------------------------------


def check(spark: SparkSession, work: Iterable[Work] | DataFrame, settings: CheckSettings) -> DataFrame:
    """Rows of CHECK_COLUMNS for the ranges of `work` (a DataFrame: of WORK_COLUMNS). Lazy, like every DataFrame."""
    if hasattr(work, "mapInArrow"):
        frame, tasks = work, TASKS_WANTED
        if settings.bring is not None:
            tasks = settings.bring.most_tasks
            frame = frame.coalesce(tasks)
    else:
        pieces = list(work)
        frame, tasks = _spread(spark, pieces, settings), _tasks(len(pieces), settings)
    shared = replace(settings, bring=settings.bring and settings.bring.shared(tasks))
    return frame.mapInArrow(functools.partial(check_task, settings=shared), sql_type(CHECK_COLUMNS))


def _spread(spark: SparkSession, work: Sequence[Work], settings: CheckSettings) -> DataFrame:
    """A row per range: neighbours in one task, for they share listings, and each task in a partition of its own."""
    size = _ranges_per_task(len(work), settings)
    rows = [(range_id, list(base_ids)) for range_id, base_ids in work]
    return spread(spark, [rows[at : at + size] for at in range(0, len(rows), size)], WORK_COLUMNS)


def _ranges_per_task(ranges: int, settings: CheckSettings) -> int:
    """Limits are divided by the tasks of a job, so one that brings has only so many as may run at once."""
    usual = settings.ranges_per_task or max(1, min(RANGES_PER_TASK, -(-ranges // TASKS_WANTED)))
    return usual if settings.bring is None else max(usual, -(-ranges // settings.bring.most_tasks))


def _tasks(ranges: int, settings: CheckSettings) -> int:
    return max(1, -(-ranges // _ranges_per_task(ranges, settings)))


def check_task(batches: Iterable[pa.RecordBatch], settings: CheckSettings) -> Iterator[pa.RecordBatch]:
    """What a Spark task does with its rows of work. A store that keeps failing ends it with one 'failed' row."""
    work = [(row["range_id"], row["base_ids"] or []) for batch in batches for row in batch.to_pylist()]
    if settings.bring is not None:
        number = _task_number()
        settings = replace(settings, bring=replace(settings.bring, sure=number == 0, task=number))
    try:
        yield from check_batch(work, settings)
    except LakeMirrorError as error:
        yield _to_batch([failed_row(error, settings.region)])


def _task_number() -> int:
    """0: the one that has what is most urgent of its job. Of others that begin late each would prolong the job."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


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
    counted = used.requests
    with _collecting_less(), ThreadPoolExecutor(settings.threads) as pool, _bringing(settings, used) as bringer:
        reader = RangeReader(used, settings, refusals, source=bringer)
        looker = _looker(used, pool, settings, refusals)
        most = settings.looked_up_at_once if bringer is None else min(BROUGHT_AT_ONCE, settings.looked_up_at_once)
        for group in _groups(ahead(work, lambda item: reader.open(*item)), most):
            proofs = _look(group, looker)
            if bringer is not None:
                yield from map(_to_batch, bring_group(group, proofs, bringer, looker))
            rows = _rows(group, proofs)
            _share_requests(rows, used.requests - counted)
            counted = used.requests
            yield _to_batch(rows)
        if bringer is not None and bringer.failure is not None:
            raise bringer.failure


@contextmanager
def _bringing(settings: CheckSettings, store: BulkStore) -> Iterator[Bringer | None]:
    """What brings, if the check does."""
    source = None if settings.bring is None else source_of(settings)
    if source is None or settings.source is None:
        yield None
        return
    bringer = Bringer(mover_of(settings), settings, Refusals(source, settings.source.namespace))
    try:
        with following(settings, store, bringer):
            yield bringer
    except BaseException:
        bringer.stop()
        raise
    finally:
        bringer.close()


@contextmanager
def _collecting_less() -> Iterator[None]:
    """Python's collector would go through a range's rows again and again, for half of a check's time."""
    usual = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def check_small(
    work: Sequence[Work], settings: CheckSettings, store: BulkStore, on_bringing: OnBringing = lambda rows: None
) -> list[Mapping[str, Any]] | None:
    """The same rows for work of which little is new, at once, without asking the source. Those that tell how far the
    bringing is go to `on_bringing` as they come; what that raises ends it.

    None where that does not do: more than SMALL_LOOKS objects to look for, content to read, or an object that differs.
    """
    if settings.depth == Depth.CONTENT:
        return None
    counted, refusals = store.requests, Refusals(store, settings.namespace)
    with ThreadPoolExecutor(settings.threads) as pool, _bringing(settings, store) as bringer:
        reader = RangeReader(store, settings, refusals, _KEPT, bringer)
        opened = list(ahead(work, lambda item: reader.open(*item)))
        if sum(each.looked_up for each in opened) > SMALL_LOOKS:
            return None
        looker = _looker(store, pool, replace(settings, source=None), refusals)
        proofs = _look(opened, looker)
        if bringer is not None:
            if lacking_bytes(opened, proofs, bringer) > SMALL_BYTES:
                return None
            for told in bring_group(opened, proofs, bringer, looker):
                on_bringing(told)
        rows = _rows(opened, proofs)
    if any(row.get("reason") in _APPEALABLE for row in rows):
        return None
    _share_requests(rows, store.requests - counted)
    failed = [] if bringer is None or bringer.failure is None else [failed_row(bringer.failure, settings.region)]
    found: list[Mapping[str, Any]] = _to_batch([*rows, *failed]).to_pylist()
    return found


def _looker(store: BulkStore, pool: ThreadPoolExecutor, settings: CheckSettings, refusals: Refusals) -> Looker:
    depth, prover = Depth(settings.depth), _prover(store, settings, refusals)
    if prover is None and depth is Depth.CONTENT:
        raise Invalid("content can't be proven without knowing the source")
    return Looker(store, pool, depth, settings.page_worth, refusals, prover, settings.sample, settings.sample_seed)


def _prover(store: BulkStore, settings: CheckSettings, refusals: Refusals) -> Prover | None:
    source = source_of(settings)
    if settings.source is None or source is None:
        return None
    places = store, settings.namespace.rstrip("/"), source, settings.source.namespace.rstrip("/")
    return Prover(*places, refusals, proof_key_of(settings.proof_key))


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


def _look(group: Sequence[OpenedRange], looker: Looker) -> list[list[Proof]]:
    """For each range what a look at the store shows of its objects."""
    proofs = iter(looker.proofs([expected for opened in group for expected in opened.expected()]))
    return [list(islice(proofs, opened.looked_up)) for opened in group]


def _problems(opened: OpenedRange, proofs: Sequence[Proof]) -> list[dict[str, Any]]:
    """What is wrong of a range's objects; how others passed is among its notes."""
    opened.notes += tell_notes(proof.note for proof in proofs if proof.note)
    return [opened.problem(at, *proof.verdict) for at, proof in enumerate(proofs) if proof.verdict]


def _rows(group: Sequence[OpenedRange], proofs: Sequence[Sequence[Proof]]) -> list[dict[str, Any]]:
    """Each range's problems, then its own row."""
    rows: list[dict[str, Any]] = []
    for opened, own in zip(group, proofs, strict=True):
        if opened.late:
            rows.append({"kind": "left", "range_id": opened.range_id})
            continue
        problems = _problems(opened, own)
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
    share, rest = divmod(requests, max(1, len(ranges)))
    for row in ranges:
        row["s3_requests"] = share + rest
        rest = 0


def _to_batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=CHECK_COLUMNS)
