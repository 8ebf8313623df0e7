"""The manifest of a large commit: parts of one upload, each written by a task from ranges of the source.

Nobody sees a part before the upload is put together. All but the last have the size that S3 asks for at least: a line
has a least length, and ranges share a part until they have lines enough.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from adapters.s3.multipart import Part, Uploads
from adapters.s3.writes import Writer
from core.errors import LakeMirrorError
from core.exporting import manifests
from core.exporting.deadline import Deadline
from core.exporting.unit_windows import ACTIONS
from graveler.metarange import RangeRef
from spark_jobs.export.plan import RangeShelf
from spark_jobs.export.settings import ExportSettings, destination_store, source_store
from spark_jobs.tasks import ahead, error_detail, spread, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEAST_LINES = 200_000
"""Of a part but the last: 37 bytes a line at least make more than the 5 MiB that S3 asks for."""
MOST_PARTS = 9_000
"""S3 takes 10,000."""
WORK_COLUMNS = pa.schema([("number", pa.int64()), ("ranges", pa.list_(pa.string()))])
PART_COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("number", pa.int64()),
        ("size", pa.int64()),
        ("etag", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)
"""kind 'unit': a part that was uploaded. 'failed': a task had to give up, `reason` is the class of core.errors."""


@dataclass(frozen=True, slots=True)
class PartWork:
    """The ranges of a part, in order of key; parts are numbered from 1."""

    number: int
    ranges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Upload:
    """The upload that the parts belong to. `actions`: with what is below `_lakefs_actions/`."""

    uri: str
    id: str
    actions: bool = True


def cut_parts(refs: Sequence[RangeRef], *, actions: bool = True) -> list[PartWork]:
    """All ranges of a commit in parts. Of a range that may lose lines, for want of `actions`, none is counted on."""
    sure = [ref.count if actions or not ACTIONS.overlaps(ref) else 0 for ref in refs]
    remaining, held = sum(sure), 0
    least = max(LEAST_LINES, -(-remaining // MOST_PARTS))
    groups: list[list[str]] = [[]]
    for ref, lines in zip(refs, sure, strict=True):
        if held >= least and remaining >= least:
            groups.append([])
            held = 0
        groups[-1].append(ref.id)
        held, remaining = held + lines, remaining - lines
    return [PartWork(number, tuple(ids)) for number, ids in enumerate(groups, 1)]


def write_parts(spark: SparkSession, work: Sequence[PartWork], settings: ExportSettings, upload: Upload) -> DataFrame:
    """Rows of PART_COLUMNS. Each action on the frame uploads them."""
    tasks = [[(part.number, list(part.ranges)) for part in work[at :: settings.tasks]] for at in range(settings.tasks)]
    frame = spread(spark, [task for task in tasks if task], WORK_COLUMNS)
    task = functools.partial(_write_task, settings=settings, upload=upload)
    return frame.mapInArrow(task, sql_type(PART_COLUMNS))


def _write_task(
    batches: Iterable[pa.RecordBatch], settings: ExportSettings, upload: Upload
) -> Iterator[pa.RecordBatch]:
    work = [PartWork(row["number"], tuple(row["ranges"])) for batch in batches for row in batch.to_pylist()]
    try:
        yield from part_rows(work, settings, upload)
    except LakeMirrorError as error:
        row = {
            "kind": "failed",
            "reason": type(error).__name__,
            "detail": error_detail(error, settings.source.region),
        }
        yield pa.RecordBatch.from_pylist([row], schema=PART_COLUMNS)


def part_rows(work: Iterable[PartWork], settings: ExportSettings, upload: Upload) -> Iterator[pa.RecordBatch]:
    """Rows of PART_COLUMNS, in this process, each as soon as its part was uploaded. Raises what the stores raise,
    NotFound or Corrupt for a range."""
    shelf = RangeShelf(source_store(settings), settings)
    uploads = Uploads(Writer(destination_store(settings), Deadline(settings.deadline)))

    def put(part: PartWork) -> tuple[int, Part]:
        body = b"".join(manifests.lines(_files(part.ranges, shelf, upload.actions)))
        return part.number, uploads.put(upload.uri, upload.id, part.number, body)

    for number, uploaded in ahead(work, put, 1):
        row = {"kind": "unit", "number": number, "size": uploaded.size, "etag": uploaded.etag}
        yield pa.RecordBatch.from_pylist([row], schema=PART_COLUMNS)


def _files(range_ids: Iterable[str], shelf: RangeShelf, actions: bool) -> Iterator[tuple[bytes, str, int]]:
    for range_id in range_ids:
        columns: Any = shelf.read(range_id).select(["path", "etag", "size"])
        if not actions:
            columns = columns.filter(pc.invert(pc.starts_with(columns.column("path"), ACTIONS.low)))
        yield from zip(*(column.to_pylist() for column in columns.columns), strict=True)
