"""The `copy` job of a link: objects in, for each a row of what came of it; `copying` is what the worker uses, too.

Nothing is begun after the deadline, and what was not begun comes back as late. A task that Spark has given to somebody
before does nothing: whoever that was may only be cut off, and still at work.
"""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from adapters.s3.store_keys import keys_hint
from core.errors import LakeMirrorError
from core.replicating.health import Standing, after
from core.replicating.outcomes import Copy, Kind, Outcome
from core.replicating.states import Code, Health
from core.replicating.versions import Version
from spark_jobs.check.lanes import Lanes
from spark_jobs.check.progress import LARGE, lane_of
from spark_jobs.replicate.building import Between, Copies
from spark_jobs.replicate.control import Following, following
from spark_jobs.replicate.copying import Wanted
from spark_jobs.replicate.pins import Pin
from spark_jobs.replicate.settings import CopySettings, mover_of, other_of, reader_of, signs_of, state_of
from spark_jobs.tasks import failed_row, spread_once, sql_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WANTED_COLUMNS = pa.schema(
    [
        ("pk", pa.int64()),
        ("key", pa.string()),
        ("size", pa.int64()),
        ("etag", pa.string()),
        ("absent", pa.bool_()),
        ("attempts", pa.int64()),
        ("again", pa.bool_()),
        ("shows", pa.bool_()),
    ]
)
"""What is to be hidden or deleted is none of it: the worker does that."""
TRIED_COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        ("pk", pa.int64()),
        ("outcome", pa.string()),
        ("code", pa.string()),
        ("message", pa.string()),
        ("size", pa.int64()),
        ("etag", pa.string()),
        ("sent", pa.bool_()),
        ("pause", pa.float64()),
        ("version", pa.string()),
        ("described", pa.string()),
        ("there", pa.string()),
        ("source", pa.string()),
        ("uncertain", pa.bool_()),
        ("replaced", pa.string()),
        ("made", pa.string()),
        ("stale", pa.string()),
        ("other", pa.string()),
        ("again", pa.bool_()),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)
"""kind 'tried': what came of an object, as an Outcome tells it; `made` as JSON. 'task': one has ended; `stale`: why
nothing may be written at the target (with `other`, whose pin is there), `again`: it did nothing, for it was given to
somebody before. 'failed': a task had to give up, `reason` is the class of core.errors."""

ROWS_AT_ONCE = 500
_REFUSED_BY = {Code.SOURCE_DENIED: "source", Code.TARGET_DENIED: "target"}


class Numbered(NamedTuple):
    """An object, with the key of its row."""

    pk: int
    wanted: Wanted


Task = Sequence[tuple[Any, ...]]
"""Rows of WANTED_COLUMNS."""


def row_of(pk: int, wanted: Wanted) -> tuple[Any, ...]:
    """An object as a row of WANTED_COLUMNS."""
    return pk, *(getattr(wanted, name) for name in WANTED_COLUMNS.names[1:])


def dealt(rows: Sequence[tuple[Any, ...]], tasks: int) -> list[Task]:
    """Rows for so many tasks: each gets as many, and about as many bytes, in their order."""
    many = max(1, min(tasks, len(rows)))
    large = [row for row in rows if lane_of(row[2]) == LARGE]
    small = [row for row in rows if lane_of(row[2]) != LARGE]
    large.sort(key=lambda row: -row[2])
    return [[*small[at::many], *large[at::many]] for at in range(many)]


# --- with Spark -------------------------------------------------------------------------------------------------------


def copy(spark: SparkSession, tasks: Sequence[Task], *, settings: CopySettings) -> DataFrame:
    """Rows of TRIED_COLUMNS, a task's rows by one task. Each action on the frame copies."""
    do = functools.partial(copy_task, settings=settings.shared(len(tasks)))
    return spread_once(spark, tasks, WANTED_COLUMNS).mapInArrow(do, sql_type(TRIED_COLUMNS))


def copy_task(batches: Iterable[pa.RecordBatch], settings: CopySettings) -> Iterator[pa.RecordBatch]:
    """What a Spark task does with its rows."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    if _is_repeated():
        yield _batch([{"kind": "task", "again": True}])
        return
    try:
        crew = crew_of(settings)
    except LakeMirrorError as error:
        yield _batch([failed_row(error, settings.target.region)])
        return
    with closing(crew):
        for found in crew.copied([Numbered(row.pop("pk"), Wanted(**row)) for row in rows]):
            yield _batch(found)


def _is_repeated() -> bool:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def _batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=TRIED_COLUMNS)


# --- anywhere ---------------------------------------------------------------------------------------------------------


def crew_of(settings: CopySettings) -> Crew:
    """What copies for a task, with this process's clients. Raises Denied where it can't open what signs copies."""
    source, target = reader_of(settings.source, settings), reader_of(settings.target, settings)
    pin = Pin(settings.pin, target, state_of(settings.target, settings))
    crew = Crew(settings, mover_of(settings), pin)
    places = Between(source, target, crew.mover, pin, signs_of(settings), lambda: crew.over, lambda: datetime.now(UTC))
    places.place = functools.partial(other_of, settings=settings)
    crew.copying = places.copying(settings.how)
    return crew


@dataclass
class Crew:
    """The threads of a task, and what they share. It stops by itself where the worker would: once a store refuses
    everything, or does not answer."""

    settings: CopySettings
    mover: Any
    pin: Pin
    copying: Copies = field(init=False)
    standing: Standing = field(default_factory=Standing)
    _stopped: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: SimpleQueue[Future[tuple[int, Outcome]]] = field(default_factory=SimpleQueue)

    @property
    def over(self) -> bool:
        """Whether nothing more may begin."""
        return self._stopped or time.time() >= self.settings.until

    def stop(self) -> None:
        """Nothing more begins; what is under way ends where its next request would begin."""
        self._stopped = True
        self.mover.stop()

    def close(self) -> None:
        """Let the threads go."""
        self.mover.close()

    def copied(self, objects: Sequence[Numbered]) -> Iterator[list[dict[str, Any]]]:
        """Rows of what came of each, as they come, and the task's own at the end."""
        settings, lanes = self.settings, Lanes(self.settings.limits.workers)
        heard = Following(state_of(settings.state, settings), settings.control, settings.job)
        rows: list[dict[str, Any]] = []
        try:
            with following(heard, self.mover, self.stop):
                for one in objects:
                    work = functools.partial(self._one, one)
                    lanes.submit(work, large=lane_of(one.wanted.size) == LARGE).add_done_callback(self._ended.put)
                silent: list[dict[str, Any]] = []
                for _ in objects:
                    pk, outcome = self._ended.get().result()
                    (silent if outcome.kind is Kind.SILENT else rows).append(tried_row(pk, outcome))
                    if len(rows) >= ROWS_AT_ONCE:
                        yield rows
                        rows = []
        finally:
            lanes.close()
        yield [*rows, *self._judged(silent), self._own_row()]

    def _one(self, one: Numbered) -> tuple[int, Outcome]:
        outcome = self._hinted(self.copying.copy(one.wanted))
        with self._lock:
            self._note(outcome)
        return one.pk, outcome

    def _hinted(self, outcome: Outcome) -> Outcome:
        """A refusal may be for want of keys, which only this executor knows."""
        if outcome.kind is not Kind.REFUSED or outcome.code not in _REFUSED_BY:
            return outcome
        place = getattr(self.settings, _REFUSED_BY[outcome.code])
        return replace(outcome, message=f"{outcome.message}. {keys_hint(place.region)}")

    def _note(self, outcome: Outcome) -> None:
        self.standing = after(self.standing, outcome, datetime.now(UTC))
        if (self.standing.state is not Health.UP or self.pin.stale) and not self._stopped:
            self.stop()

    def _judged(self, silent: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Silences that were far enough from each other here must not make the link down when they are told at once."""
        if self.standing.state is Health.DOWN:
            return silent
        return [{**row, "outcome": Kind.RETRY.value} for row in silent]

    def _own_row(self) -> dict[str, Any]:
        return {"kind": "task", "stale": self.pin.stale, "other": self.pin.of_another, "again": False}


def tried_row(pk: int, outcome: Outcome) -> dict[str, Any]:
    """An outcome as a row of TRIED_COLUMNS."""
    told = {name: getattr(outcome, name) for name in _TOLD}
    return {
        "kind": "tried",
        "pk": pk,
        "outcome": outcome.kind.value,
        "code": outcome.code.value,
        **told,
        "made": _written(outcome),
    }


def outcome_of(row: Mapping[str, Any]) -> Outcome:
    """The outcome again."""
    made = tuple(Copy(Version(*there), of) for there, of in json.loads(row["made"] or "[]"))
    return Outcome(Kind(row["outcome"]), Code(row["code"]), **{name: row[name] for name in _TOLD}, made=made)


def _written(outcome: Outcome) -> str:
    return json.dumps([(one.there, one.of) for one in outcome.made]) if outcome.made else ""


_TOLD = tuple(one.name for one in fields(Outcome) if one.name not in ("kind", "code", "made", "brought"))
