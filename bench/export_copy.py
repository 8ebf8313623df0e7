"""Bringing a commit's objects from one bucket to another within a store: an export's copy phase, rclone and s5cmd.

`python bench/export_copy.py [--s3 http://key:secret@host:port] [--small 10000] [--large 200] [--processes 2]
[--rounds 1] [--s5cmd PROGRAM]`. All ask the same server, one after the other; without `--s3` it is moto.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.writes import Writer
from core.exporting.deadline import Deadline
from core.exporting.unit_planning import plan_units
from core.exporting.unit_values import Phase, UnitWork
from graveler.entries import Entry
from graveler.ranges import write_range
from spark_jobs.check.settings import StoreLocation
from spark_jobs.export.copy import copy_units
from spark_jobs.export.settings import ExportSettings

SMALL_BYTES, LARGE_BYTES = 4 << 10, 16 << 20
REGION = "us-east-1"
RCLONE = ("--transfers", "64", "--checkers", "64", "--s3-no-check-bucket", "--stats", "0", "-q")


@dataclass(frozen=True, slots=True)
class Figure:
    """Seconds on the clock, and of the processor for whoever copied."""

    seconds: float
    processor: float


@dataclass(frozen=True, slots=True)
class Lake:
    """A bucket with a commit's objects and its range, and how to reach it."""

    endpoint: str
    keys: tuple[str, str]
    bucket: str

    def store(self) -> FastObjectStore:
        options = dict(zip(("access_key_id", "secret_access_key"), self.keys, strict=True))
        return FastObjectStore(endpoint=self.endpoint, region=REGION, force_path_style=True, pool=64, **options)

    def writer(self) -> Writer:
        return Writer(self.store(), Deadline(time.time() + 3600))

    def create(self, bucket: str) -> None:
        self.writer().write("PUT", f"s3://{bucket}")

    def fill(self, count: int, size: int) -> list[UnitWork]:
        """Objects, of which the large ones are copies of one; and the work of exporting them all."""
        store, writer, data = self.store(), self.writer(), os.urandom(size)
        store.put(f"s3://{self.bucket}/first", data)
        etag = hashlib.md5(data).hexdigest()
        entries = [Entry(b"table/part-%06d" % number, f"data/{number:06d}", size, etag) for number in range(count)]
        with ThreadPoolExecutor(32) as pool:
            uris = [f"s3://{self.bucket}/{entry.address}" for entry in entries]
            list(pool.map(lambda uri: writer.copy(f"s3://{self.bucket}/first", etag, uri, {}), uris))
        written = write_range(entries)
        store.put(f"s3://{self.bucket}/_lakefs/{written.id}", written.data)
        return [UnitWork(0, unit) for unit in plan_units([written.ref], [[]])]


def main() -> None:
    """Runs everything and prints the figures as they come."""
    asked = parsed()
    with server(asked.s3) as (endpoint, keys), workers(asked.processes) as pool:
        print(
            f"{asked.s3.rpartition('@')[2] or 'moto'}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
        for count, size in ((asked.small, SMALL_BYTES), (asked.large, LARGE_BYTES)):
            if count:
                compare(endpoint, keys, count, size, pool, asked)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--s3", default="")
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--rclone", default=shutil.which("rclone") or "")
    parser.add_argument("--s5cmd", default=shutil.which("s5cmd") or "")
    return parser.parse_args()


@contextlib.contextmanager
def server(url: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """(endpoint, keys): the given server, or moto in a process of its own."""
    if url:
        parts = urlsplit(url)
        keys = parts.username or "", parts.password or ""
        os.environ.update(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), keys, strict=True))
        yield f"{parts.scheme}://{parts.hostname}:{parts.port}", keys
        return
    from two_buckets import MOTO, running_server

    keys = "AKIABENCH", "bench-secret"
    os.environ.update(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), keys, strict=True))
    with running_server(MOTO, 1) as running:
        yield running.endpoint, keys


@contextlib.contextmanager
def workers(processes: int) -> Iterator[Pool]:
    """Processes that have loaded what an export needs, as a worker's or an executor's have."""
    pool = get_context("forkserver").Pool(processes)
    try:
        pool.map(time.sleep, [0.2] * processes, chunksize=1)
        yield pool
    finally:
        pool.close()
        pool.join()


def compare(endpoint: str, keys: tuple[str, str], count: int, size: int, pool: Pool, asked: argparse.Namespace) -> None:
    """Everybody copies the same objects, in turns, each time to another bucket."""
    lake = Lake(endpoint, keys, f"lake-{uuid.uuid4().hex[:8]}")
    lake.create(lake.bucket)
    work = lake.fill(count, size)
    runs: dict[str, Callable[[str], None]] = {"ours": partial(ours, lake, work, pool, asked)}
    runs |= {"rclone": partial(rclone, lake, asked.rclone)} if asked.rclone else {}
    runs |= {"s5cmd": partial(s5cmd, lake, asked.s5cmd)} if asked.s5cmd else {}
    took: dict[str, list[Figure]] = {name: [] for name in runs}
    for turn in range(asked.rounds):
        for name in list(runs)[:: 1 if turn % 2 == 0 else -1]:
            took[name].append(measured(lake, runs[name], count))
    tell(count, size, {name: medians(figures) for name, figures in took.items()})


def measured(lake: Lake, run: Callable[[str], None], count: int) -> Figure:
    """One run into an empty bucket, which must hold everything afterwards."""
    bucket = f"out-{uuid.uuid4().hex[:8]}"
    lake.create(bucket)
    started, used = time.monotonic(), processor()
    run(bucket)
    figure = Figure(time.monotonic() - started, processor() - used)
    keys = [one.key for one in lake.store().list(f"s3://{bucket}/")]
    if len(keys) != count:
        raise SystemExit(f"{len(keys)} of {count} objects arrived")
    lake.writer().delete([f"s3://{bucket}/{key}" for key in keys])
    return figure


def processor() -> float:
    """What programs that have ended took, and this process with its pool: those tell by themselves."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime + _TOLD[0]


_TOLD = [0.0]


def ours(lake: Lake, work: Sequence[UnitWork], pool: Pool, asked: argparse.Namespace, bucket: str) -> None:
    """The copy phase: a part of the units for each process."""
    place = StoreLocation(f"s3://{lake.bucket}", REGION, lake.endpoint)
    there = StoreLocation(f"s3://{bucket}", REGION, lake.endpoint)
    settings = ExportSettings(place, there, deadline=time.time() + 3600, threads=asked.threads)
    parts = [replace(one, part=part, parts=asked.processes) for one in work for part in range(asked.processes)]
    for told, seconds in pool.map(partial(copied, settings=settings), parts, chunksize=1):
        if told:
            raise SystemExit(told)
        _TOLD[0] += seconds


def copied(part: UnitWork, settings: ExportSettings) -> tuple[str, float]:
    """In a process of the pool: ("" or what went wrong, seconds of the processor)."""
    used = time.process_time()
    failures = [
        one
        for batch in copy_units([part], settings, Phase.COPY)
        for row in batch.to_pylist()
        for one in row["failures"]
    ]
    return str(failures[:1] or ""), time.process_time() - used


def rclone(lake: Lake, program: str, bucket: str) -> None:
    """As its users would tune it; both sides are one remote, so that the server copies."""
    remote = "RCLONE_CONFIG_LAKE_"
    settings = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": lake.endpoint, "REGION": REGION, "ENV_AUTH": "true"}
    environment = {**os.environ, **{remote + name: value for name, value in settings.items()}}
    environment.pop("AWS_CA_BUNDLE", None)
    command = [program, "copy", f"lake:{lake.bucket}/data", f"lake:{bucket}/data", *RCLONE]
    subprocess.run(command, check=True, env=environment)


def s5cmd(lake: Lake, program: str, bucket: str) -> None:
    """With its 256 workers."""
    command = [program, "--log", "error", "--endpoint-url", lake.endpoint, "cp"]
    environment = {**os.environ, "AWS_REGION": REGION}
    subprocess.run([*command, f"s3://{lake.bucket}/data/*", f"s3://{bucket}/data/"], check=True, env=environment)


def medians(figures: Sequence[Figure]) -> Figure:
    return Figure(median(one.seconds for one in figures), median(one.processor for one in figures))


def tell(count: int, size: int, took: Mapping[str, Figure]) -> None:
    """One line each; ratios above 1 say that the other takes longer."""
    print(f"{count:,} objects of {size >> 10:,} KiB")
    for name, figure in took.items():
        speed = f"{count / figure.seconds:8.0f} objects/s {count * size / figure.seconds / 1e6:9.1f} MB/s"
        ratio = f"{figure.seconds / took['ours'].seconds:.2f} times as long"
        print(f"  {name:8} {figure.seconds:7.1f} s {speed}  processor {figure.processor:6.1f} s  {ratio}", flush=True)


if __name__ == "__main__":
    main()
