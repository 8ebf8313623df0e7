"""Pieces of an export's work, as they travel to tasks and as rows of their results come back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from adapters.s3.store_keys import keys_hint
from core.errors import Denied, LakeMirrorError, Unauthenticated
from core.exporting.unit_planning import Interval, Unit, grouped
from core.exporting.unit_values import UnitWork
from spark_jobs.export.settings import ExportSettings
from spark_jobs.tasks import spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INTERVALS = pa.list_(pa.list_(pa.int64()))
UNIT_COLUMNS = pa.schema(
    [
        ("number", pa.int64()),
        ("low", pa.binary()),
        ("high", pa.binary()),
        ("target", pa.string()),
        ("others", pa.list_(pa.list_(pa.string()))),
        ("part", pa.int64()),
        ("parts", pa.int64()),
        ("left", INTERVALS),
    ]
)


def deal_out(spark: SparkSession, work: Sequence[UnitWork], tasks: int) -> DataFrame:
    """A row per unit; neighbours in one task, for they share ranges."""
    groups = grouped([item.unit.entries // item.parts for item in work], tasks)
    return spread(spark, [list(map(_row, work[start:stop])) for start, stop in groups], UNIT_COLUMNS)


def _row(work: UnitWork) -> tuple[Any, ...]:
    unit, remaining = work.unit, None if work.left is None else [list(interval) for interval in work.left]
    others = [list(ids) for ids in unit.others]
    return work.number, unit.low, unit.high, unit.target, others, work.part, work.parts, remaining


def _work_of(row: Mapping[str, Any]) -> UnitWork:
    others = tuple(tuple(ids) for ids in row["others"])
    unit = Unit(row["low"], row["high"], row["target"], others)
    return UnitWork(row["number"], unit, row["part"], row["parts"], left_of(row))


def left_of(row: Mapping[str, Any]) -> tuple[Interval, ...] | None:
    """What a row says is left of a unit; None: all of it."""
    return None if row["left"] is None else tuple((start, stop) for start, stop in row["left"])


def run_task(
    batches: Iterable[pa.RecordBatch],
    do: Callable[[Sequence[UnitWork], ExportSettings], Iterator[pa.RecordBatch]],
    columns: pa.Schema,
    settings: ExportSettings,
) -> Iterator[pa.RecordBatch]:
    """What a Spark task does with its rows of work. What fails all of it ends it with one 'failed' row."""
    try:
        yield from do([_work_of(row) for batch in batches for row in batch.to_pylist()], settings)
    except LakeMirrorError as error:
        row = {"kind": "failed", "reason": type(error).__name__, "detail": _error_text(error, settings.source.region)}
        yield pa.RecordBatch.from_pylist([row], schema=columns)


def _error_text(error: LakeMirrorError, region: str) -> str:
    """A refusal may be for want of keys, which only this executor knows. What to do is told when the run ends: it does
    not go on by itself."""
    return f"{error.message}. {keys_hint(region)}" if isinstance(error, (Denied, Unauthenticated)) else str(error)
