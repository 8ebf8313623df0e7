"""Full validation of one commit of very many objects, beside what else could be done about it; then of small changes.

`python bench/validate.py [--objects 100000] [--store moto|computed] [--rclone PROGRAM] [--spark URL]
[--repeat N]`. All runs ask the same server process, one after the other; it counts their requests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import md5
from pathlib import Path
from types import MappingProxyType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from two_buckets import COMPUTED, MIRROR, MOTO, NAMES, PREFIX, SOURCE, Server, address_of, body_of, running_server

from adapters.objects import S3ObjectStore
from adapters.objects_fast import FastObjectStore
from adapters.spark import LOCAL, Spark
from core.validation import Data, plan_checks
from graveler.entries import Entry, Timestamp
from graveler.metarange import RangeRef, read_metarange, write_metarange
from graveler.ranges import write_ranges
from spark_jobs.check import CheckSettings

MOST_IN_MOTO = 100_000
REGION = "us-east-1"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIABENCH", "AWS_SECRET_ACCESS_KEY": "bench-secret"}
MIRRORED = f"s3://{MIRROR}/{PREFIX.rstrip('/')}"
WORKERS = 3
CHANGES = 100
SMALL = 1000
GOAL_RCLONE, GOAL_HEAD = 1.8, 10.0

_RCLONE_TOLD = re.compile(r"(\d+) (differences found|matching files)")


@dataclass(frozen=True, slots=True)
class Figure:
    """What one run took."""

    seconds: float
    requests: Counter[str]


def main() -> None:
    """Runs everything and prints the figures as they come."""
    asked = parsed()
    os.environ.update(KEYS)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    rclone = shutil.which(asked.rclone)
    store = asked.store or (MOTO if asked.objects <= MOST_IN_MOTO else COMPUTED)
    with running_server(store, asked.objects) as server:
        bench = Bench(server, Spark(asked.spark))
        members = list(entries(asked.objects))
        commit = bench.write(members)
        print(f"{NAMES[store]}, both buckets in one process; Spark: {asked.spark}; load {os.getloadavg()[0]:.1f}")
        ranges = bench.refs(commit)
        print(f"{asked.objects:,} objects, {len(ranges)} ranges; Spark was ready after {bench.warm_up():.1f} s")
        if rclone is None:
            print(f"no {asked.rclone} here: not compared with it (Debian has it as a package; or give --rclone)")
        ours, theirs = [], []
        for _ in range(asked.repeat):
            ours.append(bench.shown("LakeMirror", lambda: bench.validate(commit, [], len(members))))
            theirs += rclone_figures(bench, rclone, len(members)) if rclone else []
        heads = bench.shown(f"one HEAD each, {WORKERS} workers", lambda: bench.ask_for_each(members))
        compare(min(figure.seconds for figure in ours), [figure.seconds for figure in theirs], heads.seconds)
        near = bench.write(*changed(members, near_each_other(len(members)), "data/h000000"))
        bench.shown(f"{CHANGES} changes under one prefix", lambda: bench.validate(near, ranges, CHANGES))
        far = bench.write(*changed(members, scattered(len(members)), ""))
        bench.shown(f"{CHANGES} scattered changes", lambda: bench.validate(far, ranges, CHANGES))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Validate a commit of very many objects, and compare.")
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument(
        "--store", choices=NAMES, help=f"default: {MOTO} up to {MOST_IN_MOTO:,} objects, then {COMPUTED}"
    )
    parser.add_argument(
        "--repeat", type=int, default=1, help="rounds of LakeMirror and rclone; the quickest of each counts"
    )
    parser.add_argument("--rclone", default="rclone", help="the program")
    parser.add_argument("--spark", default=LOCAL, help="a master or sc://..., whose executors know this bench's keys")
    asked = parser.parse_args()
    if asked.objects < SMALL:
        parser.error(f"--objects: at least {SMALL:,}")
    return asked


# --- the commit and its changes --------------------------------------------------------------------------------------


def entries(count: int) -> Iterator[Entry]:
    """A table of many small files, in order."""
    return (entry(number, address_of(number), body_of(number)) for number in range(count))


def entry(number: int, address: str, body: bytes) -> Entry:
    path = b"tables/events/day=%05d/part-%07d.parquet" % (number // 500, number)
    return Entry(path, address, etag=md5(body).hexdigest(), size=len(body), last_modified=Timestamp(1_750_000_000, 0))


def near_each_other(count: int) -> Sequence[int]:
    return range(count // 2, count // 2 + CHANGES)


def scattered(count: int) -> Sequence[int]:
    return range(0, count, count // CHANGES)[:CHANGES]


def changed(members: Sequence[Entry], numbers: Sequence[int], partition: str) -> tuple[list[Entry], dict[str, bytes]]:
    """(members with new objects at these places, those objects): all in one partition, or ("") each in its old one."""
    result, new = list(members), {}
    for number in numbers:
        folder = partition or address_of(number).rpartition("/")[0]
        address, body = f"{folder}/new-{number}", b"changed %d" % number
        result[number], new[address] = entry(number, address, body), body
    return result, new


# --- LakeMirror ------------------------------------------------------------------------------------------------------


class Bench:
    """A server, a Spark and what is done with them."""

    def __init__(self, server: Server, spark: Spark) -> None:
        self.server = server
        self._spark = spark
        self._settings = CheckSettings(MIRRORED, REGION, server.endpoint)
        self._store = S3ObjectStore(endpoint=server.endpoint, region=REGION, force_path_style=True)

    def write(self, members: Sequence[Entry], new: Mapping[str, bytes] = MappingProxyType({})) -> str:
        """Puts a commit's files and new objects into both buckets; gives the metarange's id."""
        ranges = list(write_ranges(members))
        metarange = write_metarange([one.ref for one in ranges])
        files = {f"_lakefs/{one.ref.id}": one.data for one in ranges} | {f"_lakefs/{metarange.id}": metarange.data}
        for bucket in (SOURCE, MIRROR):
            for address, data in {**files, **new}.items():
                self._store.put(f"s3://{bucket}/{PREFIX}{address}", data)
        return metarange.id

    def refs(self, metarange_id: str) -> list[RangeRef]:
        """The ranges of a commit, read at the mirror."""
        return read_metarange(self._store.get(f"{MIRRORED}/_lakefs/{metarange_id}"), expected_id=metarange_id)

    def warm_up(self) -> float:
        """Seconds until Spark has opened and checked a first, small commit: a running service has that behind it."""
        began = time.perf_counter()
        self._spark.warm_up()
        self.validate(self.write(list(entries(SMALL))), [], SMALL)
        return time.perf_counter() - began

    def validate(self, metarange_id: str, bases: Sequence[RangeRef], lookups: int) -> None:
        """As the validator does it: metarange, ranges without coverage, their new objects."""
        covered = {base.id: Data.COMPLETE for base in bases}
        rows: list[Mapping[str, Any]] = []
        work = [(one.range_id, one.base_ids) for one in plan_checks(self.refs(metarange_id), bases, covered)]
        self._spark.run_check(work, self._settings, rows.extend)
        expect("problems", sum(row["kind"] == "problem" for row in rows), 0)
        expect("objects looked up", sum(row["looked_up"] or 0 for row in rows), lookups)

    def ask_for_each(self, members: Sequence[Entry]) -> None:
        """The plain way, with the quicker of our clients and the addresses known beforehand."""
        store = FastObjectStore(endpoint=self.server.endpoint, region=REGION, force_path_style=True)
        with ThreadPoolExecutor(WORKERS) as pool:
            found = pool.map(lambda one: store.head(f"{MIRRORED}/{one.address}"), members)
            right = sum(info is not None and info.etag == one.etag for info, one in zip(found, members, strict=True))
        expect("objects found by HEAD", right, len(members))

    def shown(self, name: str, run: Callable[[], None]) -> Figure:
        """Measures one run and prints its line."""
        self.server.counted()
        began = time.perf_counter()
        run()
        figure = Figure(time.perf_counter() - began, self.server.counted())
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(figure.requests.items()))
        print(f"{name:34} {figure.seconds:8.2f} s  {figure.requests.total():9,} requests ({kinds})", flush=True)
        return figure


# --- the others ------------------------------------------------------------------------------------------------------


def rclone_figures(bench: Bench, program: str, objects: int) -> list[Figure]:
    """`rclone check` with its defaults, and as quick as its options make it."""
    return [
        bench.shown(name, partial(rclone_check, bench.server.endpoint, program, objects, options))
        for name, options in (
            ("rclone check", []),
            ("rclone check --fast-list", ["--fast-list", "--checkers", "32"]),
        )
    ]


def rclone_check(endpoint: str, program: str, objects: int, options: Sequence[str]) -> None:
    """Both buckets' objects compared by size and ETag, the commit's own files left out."""
    remote = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": endpoint, "REGION": REGION, "LIST_VERSION": "2"}
    keys = {"ACCESS_KEY_ID": KEYS["AWS_ACCESS_KEY_ID"], "SECRET_ACCESS_KEY": KEYS["AWS_SECRET_ACCESS_KEY"]}
    told = {f"RCLONE_CONFIG_BENCH_{name}": value for name, value in (remote | keys).items()}
    # rclone 1.60 ends at once where this one is set.
    kept = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    places = [f"bench:{bucket}/{PREFIX}data" for bucket in (SOURCE, MIRROR)]
    done = subprocess.run(
        [program, "--config", os.devnull, "check", *places, *options], env=kept | told, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"rclone check failed:\n{done.stderr[-2000:]}")
    figures = {what: int(number) for number, what in _RCLONE_TOLD.findall(done.stderr)}
    expect("objects that rclone matched", figures.get("matching files", 0), objects)


def compare(ours: float, theirs: Sequence[float], heads: float) -> None:
    """How many times as long the others took, each one's quickest run."""
    if theirs:
        print(f"{'rclone check took':34} {min(theirs) / ours:8.2f} times as long (goal {GOAL_RCLONE})")
    print(f"{'one HEAD each took':34} {heads / ours:8.2f} times as long (goal {GOAL_HEAD:.0f})", flush=True)


def expect(what: str, found: int, wanted: int) -> None:
    """Ends a measurement that did not do the work."""
    if found != wanted:
        raise SystemExit(f"{what}: {found:,} instead of {wanted:,}")


if __name__ == "__main__":
    main()
