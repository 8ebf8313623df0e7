"""What the jobs share: work dealt out to tasks, results in order while the next ones are worked on."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from adapters.s3.store_keys import keys_hint
from core import errors
from core.errors import Denied, LakeMirrorError, RemoteFailure, Unauthenticated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

T = TypeVar("T")
R = TypeVar("R")


def spread(spark: SparkSession, tasks: Sequence[Sequence[Any]], columns: pa.Schema) -> DataFrame:
    """A row of these columns for each piece of work, and each task's in a partition of its own."""
    frame = spark.createDataFrame(list(enumerate(tasks)), sql_type(_task_columns(columns)))
    # By range every task gets a partition (by hash two might share one), and Connect hands over the first ones first.
    frame = frame.repartitionByRange(len(tasks), "task") if len(tasks) > 1 else frame.coalesce(1)
    return _inlined(frame, columns)


def spread_once(spark: SparkSession, tasks: Sequence[Sequence[Any]], columns: pa.Schema) -> DataFrame:
    """The same without a shuffle, for tasks that have to know whether they are repeated: where an executor that is lost
    held what was shuffled, Spark begins the whole stage anew, and its tasks count no attempt."""
    frame = spark.createDataFrame(list(enumerate(tasks)), sql_type(_task_columns(columns)))
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return _inlined(numbers.join(frame.hint("broadcast"), numbers["id"] == frame["task"]), columns)


def _inlined(frame: DataFrame, columns: pa.Schema) -> DataFrame:
    # Said again, so that Connect's client does not ask the server for it.
    return frame.selectExpr("inline(work)").to(sql_type(columns))


@functools.cache
def _task_columns(columns: pa.Schema) -> pa.Schema:
    return pa.schema([("task", pa.int64()), ("work", pa.list_(pa.struct(columns)))])


@functools.cache
def sql_type(columns: pa.Schema) -> StructType:
    """The same for Spark: in words its server would be asked what they mean, at every job."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(columns)


def error_detail(error: LakeMirrorError, region: str) -> str:
    """A refusal may be for want of keys, which only this executor knows."""
    return f"{error}. {keys_hint(region)}" if isinstance(error, (Denied, Unauthenticated)) else str(error)


def failed_row(error: LakeMirrorError, region: str) -> dict[str, str]:
    """A row that says why a task gave up."""
    return {"kind": "failed", "reason": type(error).__name__, "detail": error_detail(error, region)}


def error_of(row: Mapping[str, Any]) -> LakeMirrorError:
    """The error that such a row tells of."""
    kind = getattr(errors, row["reason"], RemoteFailure)
    raised: LakeMirrorError = kind(row["detail"])
    return raised


def ahead(items: Iterable[T], work: Callable[[T], R], most: int = 2) -> Iterator[R]:
    """Results in order, while the next ones are being worked on."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(most) as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
