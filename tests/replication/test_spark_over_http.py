"""Rules by a real Spark, between stores that are asked by HTTP."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from adapters.places.state import StatePlace
from adapters.s3.fast_store import FastObjectStore
from adapters.sealing import seal_keys
from core.replicating.outcomes import Kind
from core.store_access import EXECUTORS_KEY
from db import clock
from deployment import config
from deployment.wiring import executors
from replication.models import Link
from spark_jobs import runner
from spark_jobs.check.settings import StoreLocation
from spark_jobs.replicate.building import HowCopied
from spark_jobs.replicate.control import Controlling
from spark_jobs.replicate.copying import Wanted
from spark_jobs.replicate.job import copy, dealt, outcome_of, row_of
from spark_jobs.replicate.look import LinkTold, LookSettings, RuleTold, Stretch, counted, look
from spark_jobs.replicate.pass_look import PassTold, pass_look, passed
from spark_jobs.replicate.pins import PinTold
from spark_jobs.replicate.settings import CopySettings, Limits
from spark_jobs.runner import Spark
from tests.mirrors.harness import Deployment
from tests.replication.world import AWAY, HOME, World
from tests.s3_double import KEYS, S3Double, Thing
from tests.spark.cluster import Cluster
from tests.spark.server import ConnectServer
from tests.spark.test_cluster import TWO_SMALL_EXECUTORS

pytestmark = pytest.mark.spark

BOX = "0" * 64
TASKS = 8
OBJECT = 512 << 10
CONTENT = os.urandom(OBJECT)
CONTROL = "rules/1/x/control.json"


class Slow(S3Double):
    """A target that counts what is put where, and takes its time for it. `at`: called once after so many puts."""

    def __init__(self) -> None:
        super().__init__()
        self.puts: Counter[str] = Counter()
        self.seconds, self.at = 0.0, {}

    def put(self, key: str, data: bytes, **claims: object) -> Thing:
        if "_lakemirror/" not in key:
            self.puts[key] += 1
            time.sleep(self.seconds)
            for number in [number for number in self.at if number <= self.puts.total()]:
                if (call := self.at.pop(number, None)) is not None:
                    threading.Thread(target=call).start()
        return super().put(key, data, **claims)


class Sink(S3Double):
    """Keeps no bytes of data."""

    def put(self, key: str, data: bytes, **claims: object) -> Thing:
        kept = data if "_lakemirror/" in key else b""
        return self.claim(key, Thing(len(data), hashlib.md5(data).hexdigest(), kept))


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """What executors need, and this process with them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["secret_access_key"])


@contextmanager
def server_with(folder: Path, key: str, **options: str) -> Iterator[ConnectServer]:
    with mock.patch.dict(os.environ, {EXECUTORS_KEY: key}):
        server = ConnectServer(folder, options)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def store_at(double: S3Double) -> FastObjectStore:
    return FastObjectStore(endpoint=double.endpoint, region=HOME, force_path_style=True, **KEYS)


def settings_between(source: S3Double, sink: S3Double, limits: Limits, **more: Any) -> CopySettings:
    """Of a link from `src` to `out`, whose pin is there."""
    sink.put("out/_lakemirror/target.json", json.dumps({"link": "x"}).encode())
    sealed = seal_keys(BOX, "signs", "secret", "")
    out = StoreLocation("s3://lake/out", AWAY, sink.endpoint)
    return CopySettings(
        StoreLocation("s3://lake/src", HOME, source.endpoint),
        out,
        HowCopied(HOME, AWAY, datetime.now(UTC)),
        PinTold("x", "r, link 1", "m", pinned=True),
        time.time() + 400,
        limits,
        out,
        CONTROL,
        "job",
        **{"proofs": sealed, "stamps": sealed, **more},
    )


def work_of(source: S3Double, number: int) -> list[Any]:
    """So many objects of half a megabyte, dealt out."""
    etag = hashlib.md5(CONTENT).hexdigest()
    for at in range(number):
        source.claim(f"src/{at:05}", Thing(OBJECT, etag, CONTENT))
    wanted = [Wanted(f"{at:05}", OBJECT, etag, True) for at in range(number)]
    return dealt([row_of(at, one) for at, one in enumerate(wanted)], TASKS)


def per_second(source: S3Double, since: float, until: float) -> float:
    return sum(size for at, size in source.given if since <= at < until) / (until - since)


@pytest.fixture(scope="module")
def eight_cores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    folder, cores = tmp_path_factory.mktemp("connect"), {"spark.master": f"local[{TASKS}]"}
    keys = {"AWS_ACCESS_KEY_ID": KEYS["access_key_id"], "AWS_SECRET_ACCESS_KEY": KEYS["secret_access_key"]}
    with mock.patch.dict(os.environ, keys), server_with(folder, BOX, **cores) as server:
        spark = Spark(server.url)
        yield spark
        spark.session().stop()


def test_34_a_limit_that_is_lowered_and_a_pause_reach_tasks_at_work_in_ten_seconds(eight_cores: Spark) -> None:
    """Eight tasks at 100 MB/s, or what this machine has, then at 10 MB/s, then a pause."""
    limits, changed, paused = Limits(16, 100e6), list[float](), list[float]()
    with S3Double() as source, Sink() as sink:
        settings, work = settings_between(source, sink, limits), work_of(source, 5000)
        told = Controlling(StatePlace(store_at(sink), "s3://lake/out"), CONTROL, "job", limits, TASKS)
        rows: list[Any] = []

        def on_rows(some: Any) -> None:
            rows.extend(some)
            now = time.time()
            if not changed and source.given and now > source.given[0][0] + 12:
                told.pace(10e6, 0)
                changed.append(now)
            if changed and not paused and now > changed[0] + 28:
                told.stop()
                paused.append(now)

        eight_cores.run_copies(partial(copy, settings=settings), work, on_rows, "1")
    before, after = per_second(source, changed[0] - 5, changed[0]), per_second(source, changed[0] + 10, paused[0])
    last = max(at for at, _ in source.given) - paused[0]
    print(f"{before / 1e6:.1f} MB/s before, {after / 1e6:.2f} MB/s after, the last byte {last:.1f} s after the pause")
    assert 12e6 < before < 110e6 and 9e6 < after < 11e6
    assert last < 10
    outcomes = Counter(outcome_of(row).kind for row in rows if row["kind"] == "tried")
    assert outcomes.total() == 5000 and outcomes.keys() == {Kind.DONE, Kind.LATE}, "each is told of"
    assert outcomes[Kind.DONE] == len([key for key in sink.things if "_lakemirror/" not in key])
    assert sink.asked["304"] > TASKS, "asked, and nothing was new"


def test_tasks_tell_what_a_target_lacks_and_what_a_pass_would_do(eight_cores: Spark) -> None:
    sealed, names = seal_keys(BOX, "signs", "secret", ""), [f"{at:05}" for at in range(4000)]
    with S3Double() as source, S3Double() as sink:
        for name in names:
            source.put(f"src/{name}", name.encode())
            if name[-1] not in "37":
                sink.put(f"out/{name}", name.encode())
        rule = RuleTold(HOME, "s3://lake/src", datetime.now(UTC))
        links = (LinkTold(7, AWAY, "s3://lake/out", "up", number=1),)
        places = StoreLocation(rule.uri, HOME, source.endpoint), StoreLocation("s3://lake/out", AWAY, sink.endpoint)
        settings = LookSettings(rule, links, places, time.time() + 60, sealed, sealed)
        cuts = ["", *names[499:-1:500], None]
        tasks = [[Stretch(at, low or "", high, (), (7,))] for at, (low, high) in enumerate(pairwise(cuts))]
        seen: list[Any] = []
        eight_cores.run_copies(partial(look, settings=settings), tasks, seen.extend, "look-1")
        passing: list[Any] = []
        job = partial(pass_look, settings=settings, made=PassTold("", "missing"))
        eight_cores.run_copies(job, tasks, passing.extend, "pass-1")
    windows = [counted(row) for row in seen if row["kind"] == "window"]
    lacks = [lack for one in windows for lack in one.lacks.get(7, ())]
    assert sorted(lack.key.decode() for lack in lacks) == [name for name in names if name[-1] in "37"]
    assert all(lack.absent for lack in lacks) and sum(one.objects for one in windows) == 4000
    assert sum(one.window.end for one in windows) == len(tasks)
    told = [passed(row) for row in passing if row["kind"] == "window"]
    sums: Counter[str] = Counter()
    for one in told:
        sums.update({key: number for key, (number, _) in one.judged.actions["1"].items()})
    assert sums == {"copy": 800, "equal": 3200} and sum(one.end for one in told) == len(tasks)


@pytest.mark.django_db
def test_5_spark_is_killed_in_the_middle_of_a_slice(lm: Deployment, tmp_path: Path) -> None:
    """It goes on where it was; at most what was in hand is copied once more."""
    with S3Double() as source, Slow() as target:
        doubles = {HOME: source, AWAY: target}
        for double in doubles.values():
            double.claim("", Thing(0, "x"))
        for number in range(300):
            source.put(f"src/k{number:03}", b"%d" % number)
        told, keys = config.current(), executors.executors_key()
        other = replace(told, replication=replace(told.replication, small_objects=0))
        stores = {region: store_at(double) for region, double in doubles.items()}

        def location(region: str, uri: str) -> StoreLocation:
            return StoreLocation(uri, region, doubles[region].endpoint)

        with (
            server_with(tmp_path, keys) as server,
            mock.patch("deployment.config.current", lambda: other),
            mock.patch("deployment.wiring.replication_jobs._store", lambda region, workers: stores[region]),
            mock.patch("deployment.wiring.clients.quick_bulk_objects", stores.get),
            mock.patch("deployment.wiring.replication_spark.location_of", location),
            mock.patch("deployment.wiring.replication_spark.REST_SECONDS", 0.0),
            mock.patch("deployment.wiring.replication_spark._rests_until", 0.0),
            mock.patch("jobs.heavy.is_heavy_now", lambda duty, region: True),
            mock.patch.dict(os.environ, {"SPARK_REMOTE": server.url}),
        ):
            w = World(lm)
            w.rule((AWAY, "s3://lake/out"), uri="s3://lake/src", pinned=False)
            w.scan()
            assert len(w.rows()) == 300
            runner.spark().warm_up()
            target.seconds, target.at = 0.05, {100: lambda: server.stop(signal.SIGKILL)}
            assert "Spark" in w.copy()[0]
            there, link = len(target.puts), w.link()
            assert 100 <= there < 200 and link.writes_until is not None and len(w.rows()) >= 300 - there
            assert "waiting for the last writes" in w.copy()[0]
            server.start()
            target.seconds = 0.0
            Link.objects.update(writes_until=clock.now())  # so long later
            w.copy()
            assert w.rows() == [] and len(target.puts) == 300
            assert target.puts.total() - 300 <= 4, "what was in hand alone"


def kill_all(cluster: Cluster) -> None:
    """Every executor: what was shuffled, if anything, is lost as well."""
    for pid in cluster.executors():
        os.kill(pid, signal.SIGKILL)


def test_5_what_an_executor_had_in_hand_that_was_killed_is_written_by_nobody_else(tmp_path: Path) -> None:
    """On a real cluster: Spark gives their tasks to new executors, which write nothing, for the first ones may only be
    cut off. They tell so, and the worker waits."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with S3Double() as source, Slow() as target, mock.patch.dict(os.environ, {EXECUTORS_KEY: BOX}):
        cluster = Cluster(folder)
        try:
            cluster.start()
            with server_with(tmp_path, BOX, **{"spark.master": cluster.url, **TWO_SMALL_EXECUTORS}) as server:
                spark, rows = Spark(server.url), list[Any]()
                spark.warm_up()
                settings = settings_between(source, target, Limits(16))
                for at in range(400):
                    source.put(f"src/{at:05}", b"%d" % at)
                things = [source.things[f"src/{at:05}"] for at in range(400)]
                wanted = [Wanted(f"{at:05}", one.size, one.etag, True) for at, one in enumerate(things)]
                target.seconds, target.at = 0.05, {60: lambda: kill_all(cluster)}
                work = dealt([row_of(at, one) for at, one in enumerate(wanted)], TASKS)
                spark.run_copies(partial(copy, settings=settings), work, rows.extend, "1")
                spark.session().stop()
        finally:
            cluster.stop()
    ended = [row for row in rows if row["kind"] == "task"]
    repeated = sum(row["again"] for row in ended)
    tried = [row["pk"] for row in rows if row["kind"] == "tried"]
    assert len(ended) == TASKS and repeated >= 1
    assert len(tried) == len(set(tried)) == 400 - repeated * 50
    assert set(target.puts.values()) == {1}, "nothing was written twice"
