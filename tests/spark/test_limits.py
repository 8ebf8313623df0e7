"""Limits of what is brought hold for a job's tasks together, and a change reaches those that run."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from graveler.ranges import write_range
from spark_jobs.check.job import RANGES_PER_TASK, _ranges_per_task, _tasks
from spark_jobs.check.live_limits import FILE, can_change, limits_file
from spark_jobs.check.settings import TASKS_WANTED, Bring, StoreLocation
from spark_jobs.runner import STEADY_SECONDS, Slots, Spark
from tests.s3_double import S3Double, Thing
from tests.spark.ranges import entry, settings_for
from tests.spark.server import ConnectServer

OBJECT = 512 << 10
TASKS = 8
CONTENT = os.urandom(OBJECT)


class Sink(S3Double):
    """Keeps only metadata whole; of objects that they came."""

    def put(self, key: str, data: bytes, **claims: object) -> Thing:
        kept = b"" if "/data/" in key else data
        return self.claim(key, Thing(len(data), hashlib.md5(data).hexdigest(), kept))


@pytest.mark.parametrize("ranges", [1, 5, 8, 100, 1000, 10_000])
@pytest.mark.parametrize("workers", [1, 3, 16, 256])
@pytest.mark.parametrize(("size", "objects"), [(0.0, 0.0), (3e6, 0.0), (0.0, 2.0), (1e9, 1e3)])
def test_the_tasks_of_a_job_have_no_more_together_than_the_mirror_may(
    ranges: int, workers: int, size: float, objects: float
) -> None:
    bring = Bring(0.0, workers, size, objects)
    settings = settings_for("", bring=bring)
    tasks = _tasks(ranges, settings)
    each = bring.shared(tasks)
    assert tasks <= min(ranges, TASKS_WANTED)
    assert tasks * each.workers <= workers
    assert (tasks * each.bytes_per_second, tasks * each.objects_per_second) == pytest.approx((size, objects))
    assert not size or each.bytes_per_second >= 1e6 - 1


def test_a_look_that_brings_nothing_has_as_many_tasks_as_before() -> None:
    settings = settings_for("")
    assert (_ranges_per_task(10_000, settings), _tasks(10_000, settings)) == (RANGES_PER_TASK, 625)


def test_how_many_tasks_run_at_once_is_learned_from_a_job_in_which_others_waited() -> None:
    now = [0.0]
    slots = Slots(lambda: now[0])
    job = slots.job()
    for running in (1, 2, 2):
        job.note(running, 6)
        now[0] += STEADY_SECONDS / 2
    slots.learn(job)
    assert slots.known() == 2
    brief = slots.job()
    brief.note(1, 7)
    alone = slots.job()
    alone.note(4, 0)
    for none in (brief, alone):
        slots.learn(none)
    assert slots.known() == 2
    now[0] += 601
    assert slots.known() == 0


def test_tasks_at_work_heed_what_they_can_share() -> None:
    """Other workers, or limits that fewer tasks may share, take another job."""
    old = Bring(0.0, 16, 100e6)
    assert can_change(old, replace(old, bytes_per_second=10e6))
    assert can_change(old, replace(old, bytes_per_second=0.0, objects_per_second=8.0))
    assert not can_change(old, replace(old, bytes_per_second=7e6))
    assert not can_change(old, replace(old, objects_per_second=2.0))
    assert not can_change(old, replace(old, workers=4))


class Paused(Exception):
    """Somebody paused the copying."""


@pytest.fixture(scope="module")
def eight_cores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    server = ConnectServer(tmp_path_factory.mktemp("connect"), {"spark.master": f"local[{TASKS}]"})
    try:
        server.start()
        client = Spark(server.url)
        yield client
        client.session().stop()
    finally:
        server.stop()


@pytest.fixture
def doubles() -> Iterator[tuple[S3Double, S3Double]]:
    with S3Double() as source, Sink() as sink:
        yield source, sink


def work_of(source: S3Double, each: int) -> list[tuple[str, list[str]]]:
    """A range for each task, with so many objects that only the source has."""
    thing, work = Thing(OBJECT, hashlib.md5(CONTENT).hexdigest(), CONTENT), list[tuple[str, list[str]]]()
    for number in range(TASKS):
        members = [entry(f"{number}/{n:05}", address=f"data/p{number}/{n:05}", content=CONTENT) for n in range(each)]
        for one in members:
            source.things[f"source/{one.address}"] = thing
        written = write_range(members)
        source.put(f"source/_lakefs/{written.id}", written.data)
        work.append((written.id, []))
    return work


def per_second(source: S3Double, since: float, until: float) -> float:
    return sum(size for at, size in source.given if since <= at < until) / (until - since)


def flows_since(source: S3Double, moment: float) -> float:
    """For how long bytes have flowed after a moment."""
    first = next((at for at, _ in source.given if at > moment), None)
    return 0.0 if first is None else time.time() - first


@pytest.mark.spark
def test_34_a_limit_that_is_lowered_and_a_pause_reach_tasks_at_work_in_ten_seconds(
    eight_cores: Spark, doubles: tuple[S3Double, S3Double]
) -> None:
    """Scenario 34: 100 MB/s, then 10 MB/s while eight tasks run, then a pause. The rate before is no more than this
    machine has."""
    source, sink = doubles
    place = StoreLocation("s3://lake/source", "us-east-1", source.endpoint)
    bring, lowered = Bring(time.time() + 400, 16, 100e6, made_at=time.time()), list[float]()
    settings = settings_for(sink.endpoint, source=place, bring=bring)

    def on_rows(rows: Iterable[Mapping[str, Any]]) -> None:
        if not lowered and flows_since(source, 0) > 15:
            sink.put(f"mirror/{FILE}", limits_file(replace(bring, bytes_per_second=10e6)))
            lowered.append(time.time())
        if lowered and time.time() > lowered[0] + 30:
            sink.put(f"mirror/{FILE}", limits_file(bring, ends=True))
            raise Paused

    with pytest.raises(Paused):
        eight_cores.run_check(work_of(source, 600), settings, on_rows)
    paused, (change,) = time.time(), lowered
    time.sleep(14)
    before, after = per_second(source, change - 5, change), per_second(source, change + 10, paused)
    print(f"{before / 1e6:.1f} MB/s before, {after / 1e6:.2f} MB/s after")
    assert 12e6 < before < 110e6
    assert 9e6 < after < 11e6
    assert per_second(source, paused + 10, paused + 14) == 0
    print(f"the last byte {max(at for at, _ in source.given) - paused:.1f} s after the pause")
    assert len([key for key in sink.things if "/data/" in key]) < TASKS * 600, "there was more to do"
