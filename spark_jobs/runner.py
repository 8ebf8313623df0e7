"""Spark for the workers: the one place that holds a session. One per process, made anew after any error.

Results are handed over while the job runs. Raises Unreachable when Spark is away, RemoteFailure when it gave the job
up, and the store's own error when it was the store that failed an executor: all of them say whether to try again.
"""

from __future__ import annotations

import functools
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import grpc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkAssertionError, PySparkException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from core.errors import LakeMirrorError, RemoteFailure, Unreachable
from spark_jobs.check.job import Work, check, load_task
from spark_jobs.check.settings import CheckSettings
from spark_jobs.session import is_remote, open_session
from spark_jobs.tasks import error_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

log = logging.getLogger(__name__)

OnRows = Callable[[list[Mapping[str, Any]]], None]
Job = Callable[[Any, Sequence[Any]], Any]
"""A session and pieces of work to a DataFrame of rows, the last one of each piece of the kind that is counted."""

LOCAL = "local[2]"
HAND_OVER_ROWS = 1000
HAND_OVER_SECONDS = 0.25
WARMED = 4
"""Tasks that only load the code; a few, since each Python process loads it for itself."""
WAVE = 128
"""Ranges in a job where results can't be had while it runs (a driver in this process)."""
TICK_SECONDS = 0.5
STEADY_SECONDS = 5.0
"""Executors come one after the other, and a first look may find tasks that only just begin."""
SLOTS_KEPT_SECONDS = 600.0
"""A cluster may have grown since."""

_AWAY = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}


def spark(url: str = "") -> Spark:
    """This process's Spark. `url`: `sc://...` or a master URL, by default SPARK_REMOTE."""
    return _spark_of(url or os.environ.get("SPARK_REMOTE") or LOCAL, os.getpid())


@functools.cache
def _spark_of(url: str, process: int) -> Spark:
    """One for each process: a session does not survive a fork."""
    return Spark(url)


class Spark:
    """A session on one Spark, opened when first needed."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session: SparkSession | None = None
        self._lock = threading.Lock()
        self._slots = Slots()

    def session(self) -> SparkSession:
        """A session that answers. Raises Unreachable."""
        with self._telling(), self._lock:
            if self._session is not None and not self._answers(self._session):
                self._session = None
            self._session = self._session or open_session(self.url)
            return self._session

    def warm_up(self) -> None:
        """Let executors load what a check needs: the first job of all takes seconds. Raises Unreachable."""
        session = self.session()
        with self._telling():
            session.range(0, WARMED, 1, WARMED).mapInArrow(load_task, "id long").collect()

    def run_check(self, work: Sequence[Work], settings: CheckSettings, on_rows: OnRows) -> None:
        """Run the `check` job; rows of CHECK_COLUMNS as dicts go to `on_rows` as they come, a range's problems before
        it. While none come, `on_rows` gets an empty list now and then, so that a caller who has had enough can raise.

        A callback that raises ends the job. Ranges whose 'range' row was handed over are checked, also if an error is
        raised in the end. What is brought is brought by as many tasks as this Spark runs at once.
        """
        if settings.bring is not None:
            tasks = min(settings.bring.tasks, self._slots.known() or settings.bring.tasks)
            settings = replace(settings, bring=replace(settings.bring, tasks=tasks))
        self._run(functools.partial(check, settings=settings), work, _Handover(on_rows, len(work)))

    def run_export(self, job: Job, work: Sequence[Any], on_rows: OnRows, tag: str) -> None:
        """Run a job of an export; its rows as dicts go to `on_rows` as they come, one for each unit.

        `tag` names the export: what an earlier worker began under it is ended first, as far as Spark knows of it (what
        executors are at may go on until its deadline). Else as `run_check`.
        """
        tag = f"lakemirror-export-{tag}"
        if work and is_remote(self.url):
            with self._telling():
                self.session().interruptTag(tag)
        self._run(job, work, _Handover(on_rows, len(work), "units"), tag)

    def run_copies(self, job: Job, work: Sequence[Any], on_rows: OnRows, tag: str) -> None:
        """Run a job of a replication rule, WAVE tasks at most; its rows as dicts go to `on_rows`. `tag` names what it
        is of. Else as `run_export`."""
        tag = f"lakemirror-rule-{tag}"
        if work and is_remote(self.url):
            with self._telling():
                self.session().interruptTag(tag)
        self._run(job, work, _Handover(on_rows, len(work), "tasks"), tag)

    @property
    def slots(self) -> int:
        """How many tasks this Spark runs at once; 0: nobody knows yet."""
        return self._slots.known()

    def run_sweep(self, job: Job, work: Sequence[Any], on_rows: OnRows) -> None:
        """Run the `sweep` job over stretches of a namespace, WAVE at most; its rows as dicts go to `on_rows`. Else as
        `run_check`: only where nothing was raised in the end do they tell of all of it."""
        self._run(job, work, _Handover(on_rows, len(work), "parts"))

    def _run(self, job: Job, work: Sequence[Any], handover: _Handover, tag: str = "") -> None:
        if not work:
            return
        session = self.session()
        with self._telling():
            if is_remote(self.url):
                self._streamed(session, job, work, handover, tag)
            else:
                self._in_waves(session, job, work, handover)
        handover.finish()

    def _streamed(self, session: SparkSession, job: Job, work: Sequence[Any], handover: _Handover, tag: str) -> None:
        """By Connect: all tasks run at once, their rows come while they do."""
        with _interruptible(session, tag), _ticking(session, handover, self._slots):
            for row in job(session, work).toLocalIterator():
                handover.take([row.asDict(recursive=True)])

    def _in_waves(self, session: SparkSession, job: Job, work: Sequence[Any], handover: _Handover) -> None:
        """A classic session would run the tasks one by one to stream them: some jobs in a row are quicker."""
        for start in range(0, len(work), WAVE):
            rows = _collected(session, job(session, work[start : start + WAVE]), handover.tick)
            handover.take([row.asDict(recursive=True) for row in rows])
            handover.flush()

    def _answers(self, session: SparkSession) -> bool:
        """Is the session still there? A server that was started anew knows it no more."""
        try:
            if is_remote(self.url):
                # Its version may be told of a closed one too; what the session itself keeps may not.
                return bool(session.conf.get("spark.sql.session.timeZone"))
            return not session.sparkContext._jsc.sc().isStopped()
        except (PySparkException, Py4JError, grpc.RpcError, OSError) as error:
            log.warning("lost the session on %s (%s): opening another", self.url, type(error).__name__)
            return False

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Spark's exceptions as core.errors; the session is not used again."""
        try:
            yield
        except (PySparkException, Py4JError, grpc.RpcError, ConnectionError) as error:
            self._session = None
            if _is_away(error):
                raise Unreachable(f"Spark at {self.url} does not answer", hint=_first_line(error)) from error
            raise RemoteFailure(f"Spark gave up the job: {_first_line(error)}") from error


def _is_away(error: Exception) -> bool:
    """Is it the connection or the session that is lost, rather than the job that failed?"""
    if isinstance(error, SparkConnectGrpcException):
        return error.getGrpcStatusCode() in _AWAY or (error.getCondition() or "").startswith("INVALID_HANDLE")
    if isinstance(error, PySparkException):
        return isinstance(error, PySparkAssertionError) or error.getCondition() == "RESPONSE_ALREADY_RECEIVED"
    return True


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:500]


@contextmanager
def _interruptible(session: Any, shared: str) -> Iterator[None]:
    """Whatever ends the block early also ends the jobs that it started, and no others that bear the `shared` tag."""
    own = f"lakemirror-{uuid.uuid4()}"
    tags = [own, shared] if shared else [own]
    for tag in tags:
        session.addTag(tag)
    try:
        yield
    except BaseException:
        _interrupt(session, own)
        raise
    finally:
        for tag in tags:
            session.removeTag(tag)


def _collected(session: Any, frame: DataFrame, tick: Callable[[], None]) -> list[Row]:
    """A classic session's rows of a job, which ends early when `tick` raises."""
    tag = f"lakemirror-{uuid.uuid4()}"

    def collect() -> list[Row]:
        session.addTag(tag)  # of this thread's jobs
        try:
            return frame.collect()
        finally:
            session.removeTag(tag)

    with ThreadPoolExecutor(1) as pool:
        rows = pool.submit(collect)
        try:
            while not wait([rows], TICK_SECONDS).done:
                tick()
        except BaseException:
            _interrupt(session, tag)
            raise
        return rows.result()


def _interrupt(session: Any, tag: str) -> None:
    try:
        session.interruptTag(tag)
    except (PySparkException, Py4JError, grpc.RpcError) as error:
        log.warning("could not interrupt the job: %s", _first_line(error))


@contextmanager
def _ticking(session: Any, handover: _Handover, slots: Slots) -> Iterator[None]:
    """Spark's own news of the job reach the handover, while the thread waits for rows."""
    thread = threading.get_ident()
    seen = slots.job()

    def handler(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        # All jobs of the session call every handler.
        if threading.get_ident() == thread and stages:
            open_tasks = sum(stage.num_tasks - stage.num_completed_tasks for stage in stages if not stage.done)
            seen.note(inflight_tasks, open_tasks - inflight_tasks)
            handover.tick()

    session.registerProgressHandler(handler)
    try:
        yield
    finally:
        session.removeProgressHandler(handler)
        slots.learn(seen)


class SlotsSeen:
    """How many tasks of one job ran at once while others of it waited."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: float | None = None
        self.most, self.steady = 0, False

    def note(self, running: int, waiting: int) -> None:
        """So many run now, and so many wait."""
        if running and waiting > 0:
            now = self._clock()
            self._since = now if self._since is None else self._since
            self.most, self.steady = max(self.most, running), now - self._since >= STEADY_SECONDS


class Slots:
    """How many tasks a Spark runs at once, as far as its jobs have shown it lately."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._known, self._until = clock, 0, 0.0

    def known(self) -> int:
        """So many; 0: nobody knows."""
        return self._known if self._clock() < self._until else 0

    def job(self) -> SlotsSeen:
        """What is seen of a job, to `learn` from at its end."""
        return SlotsSeen(self._clock)

    def learn(self, seen: SlotsSeen) -> None:
        """A job in which tasks waited for others for long enough has shown it."""
        if seen.steady:
            self._known, self._until = seen.most, self._clock() + SLOTS_KEPT_SECONDS


class _Handover:
    """Collects rows for a moment, then hands them over; keeps the first failure of a task for the end."""

    def __init__(self, on_rows: OnRows, total: int, counted: str = "ranges") -> None:
        self._on_rows, self._total, self._counted = on_rows, total, counted
        self._waiting: list[Mapping[str, Any]] = []
        self._since = time.monotonic()
        self._done = 0
        self._failed: LakeMirrorError | None = None

    def take(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """More rows."""
        for row in rows:
            if row["kind"] == "failed":
                self._note_failure(error_of(row))
            else:
                self._waiting.append(row)
                self._done += row["kind"] in (self._counted[:-1], "left")
        if len(self._waiting) >= HAND_OVER_ROWS or time.monotonic() - self._since > HAND_OVER_SECONDS:
            self.flush()

    def _note_failure(self, error: LakeMirrorError) -> None:
        """Other ranges may still get through, unless the store is away for all of them."""
        self._failed = self._failed or error
        if isinstance(error, Unreachable):
            self.flush()
            raise error

    def tick(self) -> None:
        """News of the job: a moment to hand over what has come, and for who takes it to end it."""
        if not self._waiting:
            self._on_rows([])
        self.flush()

    def flush(self) -> None:
        """Hand over."""
        rows, self._waiting, self._since = self._waiting, [], time.monotonic()
        if rows:
            self._on_rows(rows)

    def finish(self) -> None:
        """Hand over the rest, then raise what a task failed of; RemoteFailure too if ranges never came."""
        self.flush()
        if self._failed is not None:
            raise self._failed
        if self._done < self._total:
            raise RemoteFailure(f"Spark told of {self._done} of {self._total} {self._counted} only")
