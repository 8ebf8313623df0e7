"""Spark for rules, in this process: tasks one after the other, with the stores in memory."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import pyarrow as pa
from django.db.models.functions import Now

from core.errors import Unreachable
from core.store_access import EXECUTORS_KEY
from deployment import config
from deployment.wiring import executors
from jobs import heavy
from jobs.models import Duty, Worker
from replication.engine import spark_piece
from replication.engine.passes import spark_reading
from replication.models import Pass, Rule
from replication.transitions.duties import LINK
from spark_jobs.replicate import job, look, pass_look
from spark_jobs.runner import _Handover
from tests.replication.world import HOME, World

QUEUE = f"{HOME}-spark"


class SparkHere:
    """`fails`: called before each task; may raise, as Spark does when it is lost. `lost`: Spark ends after so many
    tasks have ended, and their rows with it. `away`: it does not answer. `slots`: so many tasks run at once."""

    def __init__(self) -> None:
        self.jobs: list[Sequence[Any]] = []
        self.fails: Callable[[int], None] = lambda number: None
        self.lost: int | None = None
        self.away, self.slots = False, 0
        self.settings: list[Any] = []

    @property
    def objects(self) -> int:
        """How many were given to it in all."""
        return sum(len(task) for tasks in self.jobs for task in tasks)

    def session(self) -> SparkHere:
        if self.away:
            raise Unreachable("Spark does not answer")
        return self

    def run_copies(self, made: Any, tasks: Sequence[Any], on_rows: Any, tag: str) -> None:
        """As the real one: rows of a task come when it has ended, and what failed is raised in the end."""
        self.jobs.append(tasks)
        handover = _Handover(on_rows, len(tasks), "tasks")
        settings, do, columns = made.keywords["settings"], look.look_task, look.STRETCH_COLUMNS
        if made.func is pass_look.pass_look:
            do = functools.partial(pass_look.pass_task, made=made.keywords["made"])
        if made.func is job.copy:
            settings, do, columns = settings.shared(len(tasks)), job.copy_task, job.WANTED_COLUMNS
        self.settings.append(settings)
        for number, task in enumerate(tasks):
            handover.tick()
            self.fails(number)
            if self.lost == number:
                raise Unreachable("Spark does not answer")
            rows = [dict(zip(columns.names, row, strict=True)) for row in task]
            given = [pa.RecordBatch.from_pylist(rows, schema=columns)]
            found = list(do(given, settings))
            if self.lost is None:
                for batch in found:
                    handover.take(batch.to_pylist())
        handover.finish()


def _any_pass(made: Pass) -> bool:
    return True


def _judges_nothing(rule: Rule) -> bool:
    return not rule.judges


@contextmanager
def spark_here(w: World, *, always: bool = False) -> Iterator[SparkHere]:
    """Every round of a link that has anything to copy is Spark's, and a worker of its queue is there; `always`: all
    of them, whatever has failed before."""
    made, told = SparkHere(), config.current()
    other = replace(told, replication=replace(told.replication, small_objects=0, small_bytes=0))
    Worker.objects.create(
        name="s",
        queue=QUEUE,
        host="h",
        pid=1,
        slots=1,
        load=0,
        cores=1,
        spark="sc://here:1",
        started_at=Now(),
        heard_at=Now(),
    )
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    with (
        mock.patch("jobs.heavy.is_heavy_now", (lambda duty, region: True) if always else heavy.is_heavy_now),
        mock.patch.object(spark_piece, "is_worth_spark", _judges_nothing if always else spark_piece.is_worth_spark),
        mock.patch.object(spark_reading, "is_worth_spark", _any_pass if always else spark_reading.is_worth_spark),
        mock.patch("deployment.wiring.replication_spark.REST_SECONDS", 0.0 if always else 60.0),
        mock.patch("deployment.config.current", lambda: other),
        mock.patch("spark_jobs.runner.spark", lambda url="": made),
        mock.patch("deployment.wiring.replication_spark._rests_until", 0.0),
        mock.patch("spark_jobs.replicate.settings.store_at", lambda place, tries, pool: w.stores[place.region]),
        mock.patch("spark_jobs.replicate.look.store_at", lambda place, tries, pool: w.stores[place.region]),
        mock.patch("spark_jobs.replicate.settings.is_one_store", lambda one, other: one.region == other.region),
        mock.patch.dict(os.environ, {EXECUTORS_KEY: executors.executors_key()}),
        mock.patch.object(heavy, "SILENT_AFTER", heavy.SILENT_AFTER * 1000),
    ):
        yield made
