"""The check on a real standalone cluster: a master and two workers, from the pip package."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import Unauthenticated
from spark_jobs.check.job import check_batch
from spark_jobs.check.settings import CheckSettings
from spark_jobs.runner import Spark
from spark_jobs.session import ROOT
from tests.s3_double import S3Double
from tests.spark.cluster import Cluster
from tests.spark.ranges import PREFIX, arrive, arrive_range, entries
from tests.spark.server import ConnectServer, spark_environment

pytestmark = pytest.mark.spark

Row = Mapping[str, Any]
Work = list[tuple[str, list[str]]]

QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
TWO_SMALL_EXECUTORS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.executor.extraJavaOptions": QUICK_START,
    "spark.driver.host": "127.0.0.1",
}
SUBMIT_ARGUMENTS = f"--driver-java-options '{QUICK_START}' " + " ".join(
    f"--conf '{name}={value}'" for name, value in TWO_SMALL_EXECUTORS.items()
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def spark(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """By a Connect server whose executors are the cluster's: one core on each worker."""
    server = ConnectServer(tmp_path_factory.mktemp("connect"), {"spark.master": cluster.url, **TWO_SMALL_EXECUTORS})
    try:
        server.start()
        client = Spark(server.url)
        yield client
        client.session().stop()
    finally:
        server.stop()


@pytest.fixture
def one_each(settings: CheckSettings) -> CheckSettings:
    return replace(settings, ranges_per_task=1)


def faulty_work(store: S3Double, ranges: int = 8, each: int = 50) -> Work:
    """Ranges with partitions of their own; every one lacks an object, and the last one is not there itself."""
    members = entries(ranges * each, partitions=ranges)
    arrive(store, members)
    work: Work = []
    for number in range(ranges):
        mine = members[number::ranges]
        store.drop(PREFIX + mine[number].address)
        work.append((arrive_range(store, mine), []))
    return [*work, ("0" * 64, [])]


def plain(work: Work, settings: CheckSettings) -> list[Row]:
    return [row for batch in check_batch(work, settings) for row in batch.to_pylist()]


def told(rows: list[Row]) -> list[str]:
    """What rows say, in any order, without their share of requests, which depends on the grouping."""
    plain = ("path", "looked", "min_key", "max_key")
    return sorted(repr({**row, **{name: as_bytes(row[name]) for name in plain}, "s3_requests": None}) for row in rows)


def as_bytes(data: bytes | bytearray | str | None) -> bytes | None:
    """Bytes, whether they came from Spark or as hexadecimal digits through JSON."""
    return bytes.fromhex(data) if isinstance(data, str) else data if data is None else bytes(data)


def checked(spark: Spark, work: Work, settings: CheckSettings) -> list[Row]:
    rows: list[Row] = []
    spark.run_check(work, settings, rows.extend)
    return rows


def test_a_cluster_by_connect_finds_what_local_cores_find(
    spark: Spark, spark_server: ConnectServer, cluster: Cluster, store: S3Double, one_each: CheckSettings
) -> None:
    work = faulty_work(store)
    rows = checked(spark, work, one_each)
    assert told(rows) == told(checked(Spark(spark_server.url), work, one_each)) == told(plain(work, one_each))
    assert sum(row["kind"] == "problem" for row in rows) == 9
    assert len(cluster.executors()) == 2


def test_an_executor_killed_in_the_middle_changes_nothing(
    spark: Spark, cluster: Cluster, store: S3Double, one_each: CheckSettings
) -> None:
    work = faulty_work(store)
    expected = told(plain(work, one_each))
    read: list[str] = []
    held: set[str] = set()
    both_wait, killed = threading.Event(), threading.Event()

    def hold_two_ranges(method: str, key: str) -> None:
        """The first two ranges that are read stay in the middle, one on each executor."""
        if method == "GET":
            read.append(key)
            held.add(key)
            if len(held) == 2:
                both_wait.set()
            killed.wait(60)

    def kill_one() -> None:
        if both_wait.wait(60):
            os.kill(cluster.executors()[0], signal.SIGKILL)
        killed.set()

    store.fault = hold_two_ranges
    killer = threading.Thread(target=kill_one)
    killer.start()
    rows = checked(spark, work, one_each)
    killer.join()
    assert both_wait.is_set()
    assert told(rows) == expected
    assert len(read) > len(set(read)), "no range was read a second time"


def test_executors_without_keys_say_where_they_look_for_them(
    spark: Spark, store: S3Double, settings: CheckSettings
) -> None:
    """The driver has keys in its environment; they are not the executors'."""
    work = faulty_work(store, ranges=1)
    with pytest.raises(Unauthenticated, match="LAKEMIRROR_STORE_AP_SOUTH_1_ACCESS_KEY_ID") as caught:
        checked(spark, work, replace(settings, region="ap-south-1"))
    assert "not set there" in str(caught.value)


def test_a_master_s_address_works_too(
    cluster: Cluster, store: S3Double, one_each: CheckSettings, tmp_path: Path
) -> None:
    """The driver is then a process of its own, as in a Spark worker with SPARK_REMOTE=spark://..."""
    work = faulty_work(store)
    program = (
        "import json, sys; from spark_jobs.runner import spark; from spark_jobs.check.settings import CheckSettings\n"
        "from core.store_access import StoreAccess\n"
        "told = json.load(sys.stdin); rows = []; settings = told['settings']\n"
        "settings['access'] = StoreAccess(**settings['access'])\n"
        f"spark({cluster.url!r}).run_check(told['work'], CheckSettings(**settings), rows.extend)\n"
        "print(json.dumps(rows, default=lambda data: data.hex()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps({"work": work, "settings": asdict(one_each)}),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=spark_environment() | {"PYTHONPATH": str(ROOT), "PYSPARK_SUBMIT_ARGS": f"{SUBMIT_ARGUMENTS} pyspark-shell"},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads(done.stdout.strip().splitlines()[-1])
    assert told(rows) == told(plain(work, one_each))
