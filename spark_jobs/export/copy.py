"""The `copy` job of an export: units in, for each a row of what was done and what is left.

All units of a task go through one window of threads, so that small ones don't wait for each other. Nothing visible
begins after the deadline; what was not begun comes back as `left`, and the next slice goes on there.

Only what is ours is deleted: what one of the commits has there that were brought, or tried. Each object is looked at
before, whatever the last run did: somebody may have put a file of their own in its place.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from adapters.s3.copier import Item, is_of
from core.errors import LakeMirrorError, NotFound
from core.exporting.deadline import Deadline, Late, Rate
from core.exporting.markers import Failed, directory_of
from core.exporting.unit_planning import Interval, part_rows
from core.exporting.unit_values import Phase, UnitWork
from core.types import ObjectInfo
from spark_jobs.export.compare import listed
from spark_jobs.export.ownership import owners, spans
from spark_jobs.export.patterns import last_keys
from spark_jobs.export.plan import OTHERS, Planned, RangeShelf, plan_unit
from spark_jobs.export.settings import ExportSettings, copier_of, destination_store, source_store
from spark_jobs.export.tally import COPY_COLUMNS, Rows, Tally, Version
from spark_jobs.export.unit_tasks import deal_out, run_task
from spark_jobs.tasks import ahead, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHUNK = 500


def copy(spark: SparkSession, work: Sequence[UnitWork], settings: ExportSettings, phase: Phase) -> DataFrame:
    """Rows of COPY_COLUMNS for these units. Each action on the frame copies."""
    shared = settings.shared(len(work))
    frame = deal_out(spark, work, settings.tasks)
    return frame.mapInArrow(functools.partial(_copy_task, settings=shared, phase=phase), sql_type(COPY_COLUMNS))


def _copy_task(batches: Iterable[pa.RecordBatch], settings: ExportSettings, phase: Phase) -> Iterator[pa.RecordBatch]:
    again = _is_repeated()
    yield from run_task(batches, functools.partial(copy_units, phase=phase, again=again), COPY_COLUMNS, settings)


def _is_repeated() -> bool:
    """Has Spark given this task to somebody before? Whoever that was may only be cut off, and still at work."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def copy_units(
    work: Iterable[UnitWork], settings: ExportSettings, phase: Phase, *, again: bool = False
) -> Iterator[pa.RecordBatch]:
    """Rows of COPY_COLUMNS, one for each unit, in this process; in their order, each as soon as nothing of it is under
    way. Raises what keeps a unit from being planned, after the rows of those before it. `again`: somebody else was at
    it before, and nobody knows what became of his writes."""
    with closing(_Crew(settings, phase, again)) as crew:
        waiting: deque[Tally] = deque()
        failed: LakeMirrorError | None = None
        try:
            for unit_work, rows in ahead(work, crew.prepare):
                waiting.append(crew.take(unit_work, rows))
                while waiting and waiting[0].over:
                    yield crew.row(waiting.popleft())
        except LakeMirrorError as error:
            failed = error
        for tally in waiting:
            yield crew.row(tally)
        if failed is not None:
            raise failed


class _Crew:
    """The threads of a task, and what they share."""

    def __init__(self, settings: ExportSettings, phase: Phase, again: bool) -> None:
        self._settings, self._phase, self._again = settings, phase, again
        self._copier, self._deadline = copier_of(settings), Deadline(settings.deadline)
        self._stores = {source_store(settings), destination_store(settings)}
        self._shelf = RangeShelf(source_store(settings), settings)
        self._rate, self._failed = Rate(settings.objects_per_second), Failed(settings.failed)
        self._pool = ThreadPoolExecutor(settings.threads)
        self._window = BoundedSemaphore(2 * settings.threads)
        self._counted = self._requests()
        self._failing, self._failures = count(1), 0

    def close(self) -> None:
        """Waits for what is under way."""
        self._pool.shutdown()
        self._copier.close()

    def _requests(self) -> int:
        return sum(store.requests for store in self._stores)

    def row(self, tally: Tally) -> pa.RecordBatch:
        """A unit's row, once nothing of it is under way; with the requests since the last one."""
        tally.settle()
        before, self._counted = self._counted, self._requests()
        return tally.row(self._counted - before, self._again or self._copier.writer.unanswered)

    # --- before ------------------------------------------------------------------------------------------------------

    def prepare(self, work: UnitWork) -> tuple[UnitWork, Rows | None]:
        """A unit's rows; None where there is no time for them."""
        if self._is_over():
            return work, None
        planned = plan_unit(work.unit, self._shelf, self._settings)
        rows = _part_of(_rows_of(planned, self._phase, self._settings), work)
        rows.versions = _versions(rows.deletes, planned, target_too=self._settings.compare)
        rows.existing = self._existing(rows)
        return work, rows

    def _existing(self, rows: Rows) -> Mapping[bytes, ObjectInfo]:
        """What lies at the keys to delete; where something may be there already, at all."""
        copies = rows.copies.column("path").to_pylist() if self._settings.compare else []
        keys = sorted([*rows.deletes.to_pylist(), *copies])
        return listed(destination_store(self._settings), self._copier.destination, keys)

    def _is_over(self) -> bool:
        try:
            self._deadline.check()
        except Late:
            return True
        return self._failures > self._settings.most_failures

    # --- at work -----------------------------------------------------------------------------------------------------

    def take(self, work: UnitWork, rows: Rows | None) -> Tally:
        """Begins with a unit's rows."""
        tally = Tally(work, self._fail)
        if rows is None:
            tally.untouched = True
            return tally
        for start, stop in ((0, len(rows)),) if work.left is None else work.left:
            bound = min(stop, len(rows.deletes))
            for span in spans(rows, start, bound):
                self._begin(tally, span, rows, self._delete)
            for first in range(max(start, len(rows.deletes)), stop, CHUNK):
                for at, row in enumerate(rows.copies_at(first, min(first + CHUNK, stop)), first):
                    self._begin(tally, (at, at + 1), rows, functools.partial(self._copy, row))
        return tally

    def _begin(self, tally: Tally, span: Interval, rows: Rows, do: Callable[[Tally, Interval, Rows], None]) -> None:
        if self._is_over():
            return tally.leave(span)
        self._window.acquire()
        job = self._pool.submit(do, tally, span, rows)
        job.add_done_callback(lambda _: self._window.release())
        tally.jobs.append(job)

    def _delete(self, tally: Tally, span: Interval, rows: Rows) -> None:
        keys = rows.deletes[span[0] : span[1]].to_pylist()
        try:
            found = owners(keys, rows, self._copier)
            failed = found.failed | self._delete_ours(found.ours)
        except Late:
            return tally.leave(span)
        if passing := next(filter(self._may_pass, failed.values()), None):
            return tally.postpone(span, passing)
        gone = len(keys) - len(found.foreign) - len(failed)
        # A repair looks at what earlier commits had: nearly all of it was removed long ago.
        absent = gone - len(set(found.ours).difference(failed)) if self._settings.repair else 0
        tally.add(deleted=gone - absent, skipped=0 if self._phase is Phase.CLEAR else absent)
        tally.keep([key for key in found.foreign if key not in rows.returning])
        for key, error in failed.items():
            tally.fail(key, error)

    def _delete_ours(self, keys: Sequence[bytes]) -> dict[bytes, LakeMirrorError]:
        """What could not be deleted."""
        if not keys:
            return {}
        self._deadline.pause(self._rate.turn())
        try:
            return self._copier.delete(keys)
        except LakeMirrorError as error:
            return dict.fromkeys(keys, error)

    def _copy(self, row: dict[str, Any], tally: Tally, span: Interval, rows: Rows) -> None:
        key = row["path"]
        item = Item(key, row["uri"], row["size"], row["etag"], row["content_type"], dict(row["metadata"]))
        try:
            if self._phase is Phase.LAST and self._failed.below(directory_of(key)):
                tally.add(held_back=1)
            elif self._is_there(item, rows) and not row["renewed"]:
                tally.add(skipped=1)
            else:
                self._deadline.pause(self._rate.turn())
                self._copier.copy(item)
                tally.add(copied=1, bytes=item.size)
        except Late:
            tally.leave(span)
        except LakeMirrorError as error:
            if self._may_pass(error):
                tally.postpone(span, error)
            else:
                tally.fail(key, error)

    def _may_pass(self, error: LakeMirrorError) -> bool:
        return self._settings.patient and error.retryable

    def _is_there(self, item: Item, rows: Rows) -> bool:
        """Is the entry's object at the destination already, as the entry describes it? The listing tells, or itself."""
        info = rows.existing.get(item.key)
        if info is None or info.size != item.size:
            return False
        try:
            same = is_of(info.etag, item.tag) or self._copier.has_stamp(item)
            return same and (not self._settings.ask or self._copier.is_described(item))
        except NotFound:
            return False

    def _fail(self) -> bool:
        """Counts a failure; is it still one of those that are told?"""
        self._failures = next(self._failing)
        return self._failures <= self._settings.most_failures


def _rows_of(planned: Planned, phase: Phase, settings: ExportSettings) -> Rows:
    """What a phase does with what is planned."""
    path = planned.copies.column("path")
    last_deletes, last_copies = last_keys(planned.deletes, settings.patterns), last_keys(path, settings.patterns)
    if phase is Phase.CLEAR:
        returning = path.filter(last_copies)
        keys = pa.concat_arrays([planned.deletes.filter(last_deletes), returning])
        return Rows(keys, planned.copies.slice(0, 0), returning=frozenset(returning.to_pylist()))
    if phase is Phase.LAST:
        return Rows(planned.deletes.slice(0, 0), planned.copies.filter(last_copies))
    return Rows(planned.deletes.filter(pc.invert(last_deletes)), planned.copies.filter(pc.invert(last_copies)))


def _versions(keys: pa.Array, planned: Planned, *, target_too: bool) -> Mapping[bytes, Sequence[Version]]:
    """What other commits have at these keys. What the target has may be there too, once somebody has begun with it."""
    versions: dict[bytes, list[Version]] = {}
    tables = [planned.others, pa.Table.from_batches([planned.copies.select(OTHERS.names)])]
    for table in tables[: 1 + target_too] if len(keys) else ():
        chosen = table.filter(pc.is_in(table.column("path"), value_set=keys))
        columns = (chosen.column(name).to_pylist() for name in OTHERS.names)
        for path, size, tag in zip(*columns, strict=True):
            versions.setdefault(path, []).append((size, tag))
    return versions


def _part_of(rows: Rows, work: UnitWork) -> Rows:
    start, stop = part_rows(len(rows), work.part, work.parts)
    deletes = len(rows.deletes)
    first = max(0, start - deletes)
    copies = rows.copies.slice(first, max(0, stop - deletes) - first)
    return Rows(rows.deletes[start:stop], copies, returning=rows.returning)
