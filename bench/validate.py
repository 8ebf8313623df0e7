"""Full validation of one commit of very many objects, beside what else could be done about it; then of small changes.

`python bench/validate.py [--objects 100000] [--store moto|computed] [--rclone PROGRAM] [--spark URL] [--rounds N]
[--heads N]`. All runs ask the same server process, one after the other; it counts their requests.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import md5
from statistics import median

from lake import CHANGES, Written, changed_commit, first_commit, near_each_other, scattered
from local_deployment import RunningSpark, running_spark
from two_buckets import COMPUTED, MIRROR, MOTO, NAMES, PREFIX, SOURCE, Server, address_of, body_of, running_server

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.store import S3ObjectStore
from core.mirroring.check_planning import Data, is_small, plan_checks
from deployment.config import Validator
from graveler.metarange import RangeRef, read_metarange
from spark_jobs.check.job import check_small
from spark_jobs.check.settings import CheckSettings
from spark_jobs.runner import Spark

MOST_IN_MOTO = 100_000
REGION = "us-east-1"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIABENCH", "AWS_SECRET_ACCESS_KEY": "bench-secret"}
MIRRORED = f"s3://{MIRROR}/{PREFIX.rstrip('/')}"
WORKERS = 3
SMALL = 1000
GOAL_RCLONE, GOAL_HEAD = 1.8, 10.0
GOAL_CHANGES, GOAL_CHANGES_FROM = 100.0, 1_000_000

_RCLONE_TOLD = re.compile(r"(\d+) (differences found|matching files)")


@dataclass(frozen=True, slots=True)
class Figure:
    """What one run took: seconds on the clock, and of the processor for the one who asked and the server."""

    seconds: float
    processor: float


def main() -> None:
    """Runs everything and prints the figures as they come."""
    asked = parsed()
    os.environ.update(KEYS)
    store = asked.store or (MOTO if asked.objects <= MOST_IN_MOTO else COMPUTED)
    with running_server(store, asked.objects) as server, spark_at(asked.spark) as spark:
        bench = Bench(server, spark)
        commit = first_commit(asked.objects)
        bench.put(commit)
        told = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        print(f"{NAMES[store]}, both buckets in one process; {told}; Spark: {asked.spark or 'as the service has it'}")
        print(f"{asked.objects:,} objects, {len(commit.refs)} ranges; Spark was ready after {bench.warm_up():.1f} s")
        rclone = the_others(bench, asked.rclone, asked.objects)
        medians = in_turns(
            bench, {"LakeMirror": lambda: bench.validate(commit, (), asked.objects)} | rclone, asked.rounds
        )
        ours = medians.pop("LakeMirror")
        heads = head_each(bench, asked.objects, asked.heads)
        is_large = asked.objects >= GOAL_CHANGES_FROM
        quickest = min(medians.values(), key=lambda one: one.seconds, default=None)
        tell("rclone check", quickest, ours, GOAL_RCLONE)
        tell("one HEAD each", heads, ours, GOAL_HEAD)
        for name, numbers, together in (
            ("changes under one prefix", near_each_other(asked.objects), True),
            ("scattered changes", scattered(asked.objects), False),
        ):
            then = changed_commit(commit, numbers, name.split()[0], together=together)
            bench.put(then)
            name = f"{CHANGES} {name}"
            run = partial(bench.validate, then, commit.refs, CHANGES)
            took = in_turns(bench, {name: run}, asked.rounds)[name]
            print(f"{'':30} {then.range_bytes / 1e6:8.1f} MB in {len(then.new_ranges)} ranges that changed")
            tell("rclone check", quickest, took, GOAL_CHANGES if together and is_large else 0.0)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Validate a commit of very many objects, and compare.")
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument(
        "--store", choices=NAMES, help=f"default: {MOTO} up to {MOST_IN_MOTO:,} objects, then {COMPUTED}"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of LakeMirror and rclone by turns; medians count")
    parser.add_argument("--heads", type=int, default=100_000, help="so many are asked for; the rest is reckoned")
    parser.add_argument("--rclone", default="rclone", help="the program")
    parser.add_argument("--spark", default="", help="a master or sc://..., whose executors know this bench's keys")
    asked = parser.parse_args()
    if asked.objects < SMALL:
        parser.error(f"--objects: at least {SMALL:,}")
    return asked


def spark_at(url: str) -> contextlib.AbstractContextManager[RunningSpark]:
    """The Spark that was asked for, else one as the service starts it."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return contextlib.nullcontext(RunningSpark(url)) if url else running_spark()


# --- figures ---------------------------------------------------------------------------------------------------------


def in_turns(bench: Bench, runs: Mapping[str, Callable[[], None]], rounds: int) -> dict[str, Figure]:
    """Medians of each, in rounds that go through them forwards and backwards by turns."""
    figures: dict[str, list[Figure]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in runs if number % 2 == 0 else reversed(list(runs)):
            figures[name].append(bench.shown(name, runs[name]))
    return {
        name: Figure(median([one.seconds for one in all_]), median([one.processor for one in all_]))
        for name, all_ in figures.items()
    }


def tell(what: str, theirs: Figure | None, ours: Figure, goal: float = 0.0) -> None:
    """How many times as long the other one took, and how much more of the processor."""
    if theirs is None:
        return
    clock, processor = theirs.seconds / ours.seconds, theirs.processor / ours.processor
    told = f"; goal {goal:g}: {'reached' if clock >= goal else 'missed'}" if goal else ""
    print(f"  {what}: {clock:.2f} times as long as {ours.seconds:.2f} s, {processor:.2f} times the processor{told}")


def expect(what: str, found: int, wanted: int) -> None:
    """Ends a measurement that did not do the work."""
    if found != wanted:
        raise SystemExit(f"{what}: {found:,} instead of {wanted:,}")


# --- LakeMirror ------------------------------------------------------------------------------------------------------


class Bench:
    """A server, a Spark and what is done with them."""

    def __init__(self, server: Server, spark: RunningSpark) -> None:
        self.server = server
        self._running, self._spark = spark, Spark(spark.url)
        self._settings = CheckSettings(MIRRORED, REGION, server.endpoint)
        self._store = S3ObjectStore(endpoint=server.endpoint, region=REGION, force_path_style=True)
        self._near = FastObjectStore(endpoint=server.endpoint, region=REGION, force_path_style=True)

    def put(self, commit: Written) -> None:
        """Puts what is new with a commit into both buckets."""
        for bucket in (SOURCE, MIRROR):
            for key, data in commit.files().items():
                self._store.put(f"s3://{bucket}/{PREFIX}{key}", data)

    def warm_up(self) -> float:
        """Seconds until Spark has opened and checked a first, small commit: a running service has that behind it."""
        began = time.perf_counter()
        self._spark.warm_up()
        small = first_commit(SMALL)
        self.put(small)
        self.validate(small, (), SMALL)
        return time.perf_counter() - began

    def validate(self, commit: Written, bases: Sequence[RangeRef], lookups: int) -> None:
        """As the validator does it: metarange, ranges without coverage, their new objects; small work without Spark."""
        metarange_id = commit.metarange_id
        refs = read_metarange(self._store.get(f"{MIRRORED}/_lakefs/{metarange_id}"), expected_id=metarange_id)
        covered = {base.id: Data.COMPLETE for base in bases}
        checks = plan_checks(refs, bases, covered)
        work = [(one.range_id, one.base_ids) for one in checks]
        small = is_small(checks, Validator().small_check_entries)
        rows = check_small(work, self._settings, self._near) if small else None
        if rows is None:
            rows = []
            self._spark.run_check(work, self._settings, rows.extend)
        expect("problems", sum(row["kind"] == "problem" for row in rows), 0)
        expect("objects looked up", sum(row["looked_up"] or 0 for row in rows), lookups)

    def shown(self, name: str, run: Callable[[], None]) -> Figure:
        """Measures one run and prints its line."""
        self.server.counted()
        began, spent = time.perf_counter(), self._processor()
        run()
        seconds, own = time.perf_counter() - began, self._processor() - spent
        counted = self.server.counted()
        told = f"{seconds:8.2f} s  processor {own:6.2f} s, server's {counted.processor:6.2f} s"
        print(f"{name:30} {told}  {counted}", flush=True)
        return Figure(seconds, own + counted.processor)

    def _processor(self) -> float:
        """Seconds that this process, its children and Spark have spent so far."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in used) + self._running.processor()


# --- the others ------------------------------------------------------------------------------------------------------


def head_each(bench: Bench, objects: int, most: int) -> Figure:
    """One HEAD per object, with the quicker of our clients and the addresses known beforehand."""
    store = FastObjectStore(endpoint=bench.server.endpoint, region=REGION, force_path_style=True)
    numbers = range(0, objects, max(1, -(-objects // most)))

    def is_right(number: int) -> bool:
        info = store.head(f"{MIRRORED}/{address_of(number)}")
        return info is not None and info.etag == md5(body_of(number)).hexdigest()

    def ask() -> None:
        with ThreadPoolExecutor(WORKERS) as pool:
            expect("objects found by HEAD", sum(pool.map(is_right, numbers)), len(numbers))

    figure = bench.shown(f"one HEAD each, {WORKERS} workers", ask)
    all_ = Figure(figure.seconds * objects / len(numbers), figure.processor * objects / len(numbers))
    if len(numbers) < objects:
        print(f"  every {numbers.step}th was asked for; for all of them {all_.seconds:.0f} s")
    return all_


def the_others(bench: Bench, program: str, objects: int) -> dict[str, Callable[[], None]]:
    """`rclone check` with its defaults, and as quick as its options make it."""
    found = shutil.which(program)
    if found is None:
        print(f"no {program} here: not compared with it (Debian has it as a package; or give --rclone)")
        return {}
    return {
        "rclone check": partial(rclone_check, bench.server.endpoint, found, objects, []),
        "rclone check --fast-list": partial(
            rclone_check, bench.server.endpoint, found, objects, ["--fast-list", "--checkers", "32"]
        ),
    }


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


if __name__ == "__main__":
    main()
