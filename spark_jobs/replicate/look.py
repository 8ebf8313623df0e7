"""The `look` job of a rule: stretches of keys in, for each page of the source a row of what its targets lack there.

Read-only, and by what the worker reads with. A task goes through its stretches until the slice is over; a stretch that
was not read to its end goes on behind the last row that came of it.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from adapters.places.describer import Describer
from adapters.places.reader import PlaceReader
from adapters.places.versions import VersionedPlace
from core.errors import Invalid, LakeMirrorError, RemoteFailure
from core.replicating.both_ways.upstream import Way
from core.replicating.eligible import in_time
from core.replicating.merging import Window
from core.travelling.describing import Terms
from spark_jobs.check.settings import StoreLocation, store_at
from spark_jobs.replicate.both_ways import Upstream
from spark_jobs.replicate.building import Signs, upstream_of
from spark_jobs.replicate.lacking import Lack
from spark_jobs.replicate.looking import THREADS, Lacks, Looker
from spark_jobs.replicate.reading import SPANS, Judged, Reading, Span
from spark_jobs.replicate.settings import TRIES, opened
from spark_jobs.replicate.version_looking import VersionLooker
from spark_jobs.tasks import failed_row, spread, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STRETCH_COLUMNS = pa.schema(
    [
        ("pk", pa.int64()),
        ("low", pa.string()),
        ("high", pa.string()),
        ("marks", pa.list_(pa.string())),
        ("fresh", pa.list_(pa.int64())),
    ]
)
"""Keys after `low`, up to `high`, with it (null: to the end); `marks`: where it is cut to be read side by side;
`fresh`: links that had nothing open there."""
SEEN_COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("pk", pa.int64()),
        ("last", pa.string()),
        ("end", pa.bool_()),
        ("keys", pa.int64()),
        ("objects", pa.int64()),
        ("bytes", pa.int64()),
        ("told", pa.binary()),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)
"""kind 'window': of a stretch the keys up to `last` were looked at, behind those of the row before; `end`: that was all
of it. `told`: what each target lacks, and which could not be listed, as JSON. 'error': the source could not be read.
'task': one has ended. 'failed': a task had to give up. `reason` is the class of core.errors."""


@dataclass(frozen=True, slots=True)
class RuleTold:
    """A rule, as far as looks go by it. `made`: when it was created."""

    region: str
    uri: str
    made: datetime
    existing: bool = True
    new: bool = True
    both_ways: bool = False
    all_versions: bool = False
    terms: Terms = Terms()
    markers: bool = False
    purges: bool = False

    def wants(self, modified: datetime | None) -> bool:
        """Whether an object that was last written then is copied; None: nobody knows when."""
        return in_time(modified, self.made, existing=self.existing, new=self.new)


@dataclass(frozen=True, slots=True)
class LinkTold:
    """The same of a link."""

    pk: int
    region: str
    uri: str
    health: str
    exact: bool | None = None
    number: int = 0
    ways: tuple[Way, ...] = ()


@dataclass(frozen=True, slots=True)
class LookSettings:
    """A rule with its links; the places that are read, as far as they are configured; until when (Unix time) the look
    goes on; what signs what copies say of themselves, sealed."""

    rule: RuleTold
    links: tuple[LinkTold, ...]
    places: tuple[StoreLocation, ...]
    until: float
    proofs: str = ""
    stamps: str = ""
    dated: bool = False


class Stretch(NamedTuple):
    """A row of STRETCH_COLUMNS."""

    pk: int
    low: str
    high: str | None
    marks: Sequence[str]
    fresh: Sequence[int]

    @property
    def row(self) -> tuple[Any, ...]:
        """As Spark takes it."""
        return self.pk, self.low, self.high, list(self.marks), list(self.fresh)

    def spans(self) -> Iterator[Span]:
        """It from mark to mark."""
        inside = [mark for mark in self.marks if mark > self.low and (self.high is None or mark < self.high)]
        fresh = frozenset(self.fresh)
        for one, following in pairwise([self.low, *inside]):
            yield Span(self, one, following, False, fresh)
        yield Span(self, inside[-1] if inside else self.low, self.high, True, fresh)


# --- with Spark -------------------------------------------------------------------------------------------------------


def look(spark: SparkSession, tasks: Sequence[Sequence[Stretch]], *, settings: LookSettings) -> DataFrame:
    """Rows of SEEN_COLUMNS, a task's stretches by one task, in their order."""
    work = [[one.row for one in task] for task in tasks]
    do = functools.partial(look_task, settings=settings)
    return spread(spark, work, STRETCH_COLUMNS).mapInArrow(do, sql_type(SEEN_COLUMNS))


def look_task(batches: Iterable[pa.RecordBatch], settings: LookSettings) -> Iterator[pa.RecordBatch]:
    """What a Spark task does with its rows."""
    stretches = [Stretch(**row) for batch in batches for row in batch.to_pylist()]
    try:
        for rows in seen(stretches, settings):
            yield _batch(rows)
    except LakeMirrorError as error:
        yield _batch([failed_row(error, settings.rule.region)])
        return
    yield _batch([{"kind": "task"}])


def _batch(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SEEN_COLUMNS)


# --- anywhere ---------------------------------------------------------------------------------------------------------


class Told:
    """Places as a job was told of them."""

    def __init__(self, settings: LookSettings) -> None:
        self._places = {(place.region, place.namespace): place for place in settings.places}
        self.signs: Signs = opened(settings.proofs, settings.stamps)

    def place(self, region: str, uri: str, *, versions: bool) -> PlaceReader:
        """What reads a place. Raises Invalid for one that nothing was told of."""
        location = self._places.get((region, uri))
        if location is None:
            raise Invalid(f"the region {region} is not configured")
        store = store_at(replace(location, namespace=""), TRIES, THREADS + 2 * SPANS)
        return (VersionedPlace if versions else PlaceReader)(store, uri)

    def describer_of(self, place: PlaceReader) -> Describer:
        """What asks what a place's objects have beside their bytes."""
        return Describer(place, TRIES)

    def upstream(self, rule: RuleTold, link: LinkTold) -> Upstream | None:
        """What asks the places that lead to a link's source, where that is needed."""
        return upstream_of(link.ways, functools.partial(self.place, versions=False), self.signs, self.now)

    def now(self) -> datetime:
        """The moment by this machine's clock."""
        return datetime.now(UTC)


def looker_of(settings: LookSettings) -> Looker:
    """What looks for the rule. Close it. Raises Denied where what signs copies can't be opened."""
    kind = VersionLooker if settings.rule.all_versions else Looker
    return kind(settings.rule, settings.links, Told(settings), dated=settings.dated)


def seen(stretches: Sequence[Stretch], settings: LookSettings) -> Iterator[list[dict[str, Any]]]:
    """Rows of what was seen, until the time is up, or the source can't be read."""
    spans = (span for one in stretches for span in one.spans())

    def over() -> bool:
        return time.time() >= settings.until

    with closing(looker_of(settings)) as looker, closing(Reading(looker, over)) as reading:
        for read in reading.in_order(lambda: None if over() else next(spans, None)):
            ends = read.span.last
            yield [_row(read.span.shard.pk, one, end=ends and one.window.end) for one in read.judged]
            if read.error is not None:
                yield [{**failed_row(read.error, settings.rule.region), "kind": "error"}]
                return
            if over():
                return


def _row(pk: int, one: Judged, *, end: bool) -> dict[str, Any]:
    lacks = {link: [[lack.key.decode(), *lack[1:]] for lack in some] for link, some in one.lacks.items() if some}
    failed = {link: str(error) for link, error in one.window.failed.items()}
    told = {"lacks": lacks, "failed": failed, "listed": list(one.window.there)}
    row = {"kind": "window", "pk": pk, "last": one.window.last, "end": end, "told": json.dumps(told).encode()}
    return {**row, "keys": one.keys, "objects": one.objects, "bytes": one.bytes}


@dataclass(frozen=True, slots=True)
class Counted:
    """What a row tells of a window: as a Judged, without what lies there."""

    window: Window
    lacks: Lacks
    keys: int
    objects: int
    bytes: int


def counted(row: Mapping[str, Any]) -> Counted:
    """A row of the kind 'window' again."""
    told = json.loads(row["told"])
    lacks = {int(link): [Lack(key.encode(), *more) for key, *more in some] for link, some in told["lacks"].items()}
    failed: dict[int, LakeMirrorError] = {int(link): RemoteFailure(text) for link, text in told["failed"].items()}
    there: dict[int, dict[str, tuple[int, str]]] = {int(link): {} for link in told["listed"]}
    window = Window([], there, row["last"], row["end"], failed)
    return Counted(window, lacks, row["keys"], row["objects"], row["bytes"])
