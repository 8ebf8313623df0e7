"""What two executors of a standalone cluster bring in the time that one needs, where the store is no limit.

`python bench/executors.py [--objects 6000] [--workers 12] [--delay 0.1] [--rounds 1]`. Each executor has one core and
may bring so many objects at once; the store computes its objects and answers each request late, so that an executor
waits as it does for a store that is far away, and what the server costs on the same machine counts for little.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from hashlib import md5
from pathlib import Path
from statistics import median

from two_buckets import COMPUTED, MIRROR, NAMES, PREFIX, SOURCE, Server, address_of, body_of, running_server

from adapters.s3.store import S3ObjectStore
from graveler.entries import Entry
from graveler.ranges import write_range
from spark_jobs.check.settings import Bring, CheckSettings, StoreLocation
from spark_jobs.runner import Spark
from tests.spark.cluster import Cluster
from tests.spark.server import ConnectServer

GOAL = 1.7
HOST = "127.0.0.1"
"""Under another name the same server counts as another store."""
RANGES = 24
KEYS = {"AWS_ACCESS_KEY_ID": "AKIABENCH", "AWS_SECRET_ACCESS_KEY": "bench-secret"}
REGION = "us-east-1"
"""The executors of the cluster know a key for it."""


def main() -> None:
    """Takes turns and prints the ratio of the medians."""
    asked = parsed()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.update(KEYS)
    with (
        running_server(COMPUTED, asked.objects, mirror_is_empty=True, delay=asked.delay) as server,
        running_cluster() as cluster,
    ):
        told = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        print(f"{NAMES[COMPUTED]} after {1000 * asked.delay:.0f} ms; {told}; {asked.objects:,} objects", flush=True)
        work = ranges_at(server, asked.objects)
        took: dict[int, list[float]] = {1: [], 2: []}
        for turn in range(asked.rounds):
            for executors in (1, 2) if turn % 2 == 0 else (2, 1):
                seconds = measured(server, cluster, work, executors, turn, asked)
                took[executors].append(seconds)
        ratio = median(took[1]) / median(took[2])
        print(f"two executors bring {ratio:.2f} times what one does in the same time (goal: {GOAL})")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=6000)
    parser.add_argument("--workers", type=int, default=12, help="objects at once, of each executor")
    parser.add_argument("--delay", type=float, default=0.1, help="seconds until the store answers")
    parser.add_argument("--rounds", type=int, default=1)
    return parser.parse_args()


@contextlib.contextmanager
def running_cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="lakemirror-bench-") as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def ranges_at(server: Server, objects: int) -> list[tuple[str, Sequence[str]]]:
    """The source's ranges, put there; nothing is covered by another."""
    store = S3ObjectStore(endpoint=server.endpoint, region=REGION, force_path_style=True)
    entries = [_entry(number) for number in range(objects)]
    size = -(-objects // RANGES)
    written = [write_range(entries[first : first + size]) for first in range(0, objects, size)]
    for one in written:
        store.put(f"s3://{SOURCE}/{PREFIX}_lakefs/{one.id}", one.data)
    return [(one.id, ()) for one in written]


def _entry(number: int) -> Entry:
    body = body_of(number)
    return Entry(b"t/%09d" % number, address_of(number), len(body), md5(body, usedforsecurity=False).hexdigest())


def measured(
    server: Server,
    cluster: Cluster,
    work: Sequence[tuple[str, Sequence[str]]],
    executors: int,
    turn: int,
    asked: argparse.Namespace,
) -> float:
    """Seconds of a job that brings everything, to a namespace of its own; Spark is warm."""
    options = {
        "spark.master": cluster.url,
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.cores.max": str(executors),
        "spark.driver.host": "127.0.0.1",
    }
    with tempfile.TemporaryDirectory(prefix="lakemirror-bench-") as folder:
        connect = ConnectServer(Path(folder), options)
        try:
            connect.start()
            return _brought(server, Spark(connect.url), work, f"{executors}-{turn}", executors, asked)
        finally:
            connect.stop()


def _brought(
    server: Server,
    spark: Spark,
    work: Sequence[tuple[str, Sequence[str]]],
    name: str,
    executors: int,
    asked: argparse.Namespace,
) -> float:
    bring = Bring(time.time() + 3600, workers=asked.workers * executors, tasks=executors)
    settings = CheckSettings(
        f"s3://{MIRROR}/{name}",
        REGION,
        server.endpoint,
        source=StoreLocation(f"s3://{SOURCE}/{PREFIX.rstrip('/')}", REGION, server.endpoint.replace(HOST, "localhost")),
        bring=bring,
    )
    spark.warm_up()
    server.counted()
    rows: list[object] = []
    began = time.monotonic()
    spark.run_check(work, settings, rows.extend)
    seconds = time.monotonic() - began
    asked_for = server.counted()
    whole = [row for row in rows if row["kind"] == "range"]  # type: ignore[index]
    problems = [row for row in rows if row["kind"] == "problem"]  # type: ignore[index]
    if len(whole) != len(work) or problems:
        raise SystemExit(f"{len(whole)} of {len(work)} ranges were brought, with {len(problems)} problems")
    print(
        f"{executors} executor{'s' * (executors > 1)}: {seconds:.1f} s, {asked.objects / seconds:.0f} objects/s; "
        f"{asked_for}, {asked_for.processor:.1f} s of the server's processor",
        flush=True,
    )
    return seconds


if __name__ == "__main__":
    main()
