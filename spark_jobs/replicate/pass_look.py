"""The `pass_look` job: stretches of a pass in, for each page of the source a row of what the pass does with it. Nothing
is written.

A task goes through its stretches until the slice is over, or it has found as much to be copied as it may; a stretch
that was not read to its end goes on behind the last row that came of it.
"""

from __future__ import annotations

import functools
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from core.errors import LakeMirrorError
from core.replicating.passes import ReportRow
from spark_jobs.replicate.lacking import Lack
from spark_jobs.replicate.look import STRETCH_COLUMNS, LookSettings, Stretch, looker_of
from spark_jobs.replicate.looking import Looker
from spark_jobs.replicate.passing import Judge, Judged
from spark_jobs.tasks import failed_row, spread, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PASSED_COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("pk", pa.int64()),
        ("last", pa.string()),
        ("end", pa.bool_()),
        ("told", pa.binary()),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)
"""Kinds as in `look`; `told`: what is done with the objects up to `last`, as JSON. 'error': source or target could not
be read."""


@dataclass(frozen=True, slots=True)
class PassTold:
    """Which objects a pass looks at, and what it is for. `most`: a task stops after it has found so many to be copied;
    0: any number."""

    prefix: str
    what: str
    older_than: datetime | None = None
    most: int = 0


class Passed(NamedTuple):
    """A row of the kind 'window': what it tells, up to which key, and whether the stretch ends there."""

    judged: Judged
    last: str
    end: bool


def pass_look(
    spark: SparkSession, tasks: Sequence[Sequence[Stretch]], *, settings: LookSettings, made: PassTold
) -> DataFrame:
    """Rows of PASSED_COLUMNS, a task's stretches by one task, in their order."""
    work = [[one.row for one in task] for task in tasks]
    do = functools.partial(pass_task, settings=settings, made=made)
    return spread(spark, work, STRETCH_COLUMNS).mapInArrow(do, sql_type(PASSED_COLUMNS))


def pass_task(batches: Iterable[pa.RecordBatch], settings: LookSettings, made: PassTold) -> Iterator[pa.RecordBatch]:
    """What a Spark task does with its rows."""
    stretches = [Stretch(**row) for batch in batches for row in batch.to_pylist()]
    try:
        with closing(looker_of(settings)) as looker:
            for row in _passed(stretches, settings, made, looker):
                yield _batch(row)
    except LakeMirrorError as error:
        yield _batch(failed_row(error, settings.rule.region))
        return
    yield _batch({"kind": "task"})


def _batch(row: Mapping[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(row)], schema=PASSED_COLUMNS)


def _passed(
    stretches: Sequence[Stretch], settings: LookSettings, made: PassTold, looker: Looker
) -> Iterator[dict[str, Any]]:
    judge, found = Judge(made, looker, settings.links), 0
    for stretch in stretches:
        try:
            for window in looker.windows(stretch.low, stretch.high):
                for error in window.failed.values():
                    raise error
                judged = judge.judge(window)
                yield _row(stretch.pk, judged, window)
                found += sum(map(len, judged.lacks.values()))
                if time.time() >= settings.until or (made.most and found >= made.most):
                    return
                if window.end:
                    break
        except LakeMirrorError as error:
            yield {**failed_row(error, settings.rule.region), "kind": "error"}
            return


def _row(pk: int, judged: Judged, window: Any) -> dict[str, Any]:
    lacks = {link: [[lack.key.decode(), *lack[1:]] for lack in some] for link, some in judged.lacks.items()}
    told = {"actions": judged.actions, "rows": judged.rows, "lacks": lacks}
    told |= {"looked_at": judged.looked_at, "bytes": judged.bytes}
    return {"kind": "window", "pk": pk, "last": window.last, "end": window.end, "told": json.dumps(told).encode()}


def passed(row: Mapping[str, Any]) -> Passed:
    """A row of the kind 'window' again."""
    told = json.loads(row["told"])
    judged = Judged(
        defaultdict(dict, told["actions"]),
        [ReportRow(*one) for one in told["rows"]],
        defaultdict(list),
        told["looked_at"],
        told["bytes"],
    )
    for link, some in told["lacks"].items():
        judged.lacks[int(link)] = [Lack(key.encode(), *more) for key, *more in some]
    return Passed(judged, row["last"], row["end"])
