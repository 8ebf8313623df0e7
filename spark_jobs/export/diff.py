"""The `diff` job of an export: units in, for each a row of counts out, with the directories that get a marker.

Runs on any Spark, by Connect too, or in this process (`diff_units`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from core.errors import Corrupt, NotFound
from core.exporting.markers import touched_directories
from core.exporting.unit_planning import Unit
from core.exporting.unit_values import UnitWork
from spark_jobs.export.patterns import last_keys, matching
from spark_jobs.export.plan import Planned, RangeShelf, plan_unit
from spark_jobs.export.settings import ExportSettings, source_store
from spark_jobs.export.unit_tasks import deal_out, run_task
from spark_jobs.tasks import ahead, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DIFF_COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("unit", pa.int64()),
        ("to_copy", pa.int64()),
        ("to_delete", pa.int64()),
        ("copy_bytes", pa.int64()),
        ("last_keys", pa.int64()),
        ("directories", pa.list_(pa.binary())),
        ("unreadable", pa.list_(pa.string())),
        ("requests", pa.int64()),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)
"""kind 'unit': what is planned for this one. `last_keys`: so many of its copies and deletes come last; `directories`:
those that match and in or below which something is planned. `unreadable`: ranges of other commits than the target that
are gone or damaged; nothing of the unit is planned then.
'failed' (in DataFrames only): a task had to give up, `reason` is the class of core.errors."""

_NOTHING = {"to_copy": 0, "to_delete": 0, "copy_bytes": 0, "last_keys": 0, "directories": []}


def diff(spark: SparkSession, work: Sequence[UnitWork], settings: ExportSettings) -> DataFrame:
    """Rows of DIFF_COLUMNS for these units. Lazy, like every DataFrame."""
    frame = deal_out(spark, work, settings.tasks)
    task = functools.partial(run_task, do=diff_units, columns=DIFF_COLUMNS, settings=settings)
    return frame.mapInArrow(task, sql_type(DIFF_COLUMNS))


def diff_units(work: Iterable[UnitWork], settings: ExportSettings) -> Iterator[pa.RecordBatch]:
    """Rows of DIFF_COLUMNS for whole units, in this process, each as soon as it was read. Raises what the store raises;
    NotFound or Corrupt for a range of the target."""
    store = source_store(settings)
    shelf, counted = RangeShelf(store, settings), store.requests
    for unit_work, found in ahead(work, lambda unit_work: (unit_work, _planned(unit_work.unit, shelf, settings))):
        row = {"kind": "unit", "unit": unit_work.number, **found, "requests": store.requests - counted}
        counted = store.requests
        yield pa.RecordBatch.from_pylist([row], schema=DIFF_COLUMNS)


def _planned(unit: Unit, shelf: RangeShelf, settings: ExportSettings) -> Mapping[str, Any]:
    try:
        return _counts(plan_unit(unit, shelf, settings), settings)
    except (Corrupt, NotFound):
        others = {range_id for range_ids in unit.others for range_id in range_ids} - {unit.target}
        unreadable = sorted(range_id for range_id in others if not _is_readable(range_id, shelf))
        if not unreadable:
            raise
        return {**_NOTHING, "unreadable": unreadable}


def _is_readable(range_id: str, shelf: RangeShelf) -> bool:
    try:
        shelf.read(range_id)
    except (Corrupt, NotFound):
        return False
    return True


def _counts(planned: Planned, settings: ExportSettings) -> dict[str, Any]:
    last = last_keys(planned.deletes, settings.patterns), last_keys(planned.copies.column("path"), settings.patterns)
    return {
        "to_copy": planned.copies.num_rows,
        "to_delete": len(planned.deletes),
        "copy_bytes": pc.sum(planned.copies.column("size")).as_py() or 0,
        "last_keys": sum(pc.sum(mask).as_py() or 0 for mask in last),
        "directories": _directories(planned, (*settings.patterns, *settings.former)),
        "unreadable": [],
    }


def _directories(planned: Planned, patterns: Sequence[str]) -> list[bytes]:
    if not patterns:
        return []
    touched = pa.array(touched_directories(planned.keys.to_pylist()), pa.binary())
    marked: list[bytes] = touched.filter(matching(touched, patterns)).to_pylist()
    return marked


def held_keys(holders: Mapping[str, Sequence[bytes]], settings: ExportSettings) -> set[bytes]:
    """Which of these keys their ranges hold (`core.exporting.unit_planning.holders`): a user's own `_lakefs_success`
    takes the place of a marker, though it may be in a range that no unit reads."""
    shelf = RangeShelf(source_store(settings), settings)
    held: set[bytes] = set()
    for range_id, path in ahead(holders, lambda range_id: (range_id, shelf.read(range_id).column("path"))):
        keys = pa.array(holders[range_id], pa.binary())
        held.update(keys.filter(pc.is_in(keys, value_set=path)).to_pylist())
    return held
