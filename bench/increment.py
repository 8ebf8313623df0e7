"""A commit of 100 changes in repositories of different sizes: what does checking it cost?

`python bench/increment.py [--objects N ...] [--commits N] [--spark URL]` lets the validator's duty run on real tables
(SQLite, in a folder of its own) against a store that computes its objects. Nothing here fails on a slow machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any
from unittest import mock

from lake import CHANGES, Written, changed_commit, first_commit, metadata_key, near_each_other, scattered
from local_deployment import add_mirror, fresh_database, run_duty
from two_buckets import COMPUTED, MIRROR, NAMES, PREFIX, SOURCE, Counted, Server, running_server
from validate import KEYS, expect, spark_at

from adapters.s3.store import S3ObjectStore
from spark_jobs import runner

GOAL = 1.5
NAMESPACES = tuple(f"s3://{bucket}/{PREFIX.rstrip('/')}" for bucket in (SOURCE, MIRROR))


@dataclass(frozen=True, slots=True)
class Cost:
    """What the validator's round took: in all, for the check alone, and what the store was asked."""

    seconds: float
    job_seconds: float
    asked: Counted
    ranges: int
    range_bytes: int
    base_bytes: int


@dataclass(slots=True)
class Lake:
    """A repository and its mirror in a region of their own, where everything of it is."""

    objects: int
    server: Server
    mirror: Any
    first: Written = field(init=False)
    sizes: dict[str, int] = field(default_factory=dict)
    near: list[Cost] = field(default_factory=list)
    far: list[Cost] = field(default_factory=list)

    def begin(self) -> Cost:
        """Validate the first commit, all of it."""
        self.first = first_commit(self.objects)
        return self.validated(self.first, [], self.objects)

    def change(self, numbers: Sequence[int], label: str, *, together: bool) -> Cost:
        """Validate a commit of changes on top of the first one."""
        then = changed_commit(self.first, numbers, label, together=together)
        return self.validated(then, [self.first.metarange_id], len(numbers))

    def validated(self, commit: Written, parents: list[str], lookups: int) -> Cost:
        """Put a commit into the mirror's bucket, let the sensor's rows be there, and measure the validator's duty."""
        self._put(commit)
        row = self._sensed(commit, parents)
        before = set(self.mirror.coverage.values_list("range_id", flat=True))
        self.server.counted()
        took = run_duty("validate", self.mirror.pk)
        asked = self.server.counted()
        row.refresh_from_db()
        run = self.mirror.runs.first()
        expect(f"objects looked up, the commit being {row.data}", run.looked_up, lookups)
        covered = self.mirror.coverage.filter(state="complete").exclude(range_id__in=before)
        expect("ranges written down as complete", covered.count(), len(commit.new_ranges))
        bases = {base for coverage in covered for base in coverage.bases}
        seconds = (run.ended_at - run.started_at).total_seconds()
        base_bytes = sum(self.sizes[base] for base in bases)
        return Cost(took.clock, seconds, asked, len(commit.new_ranges), commit.range_bytes, base_bytes)

    def _put(self, commit: Written) -> None:
        store = S3ObjectStore(endpoint=self.server.endpoint, region="us-east-1", force_path_style=True)
        for key, data in commit.files().items():
            store.put(f"{NAMESPACES[1]}/{key}", data)
        self.sizes |= {ref.id: len(commit.metadata[metadata_key(ref.id)]) for ref in commit.new_ranges}

    def _sensed(self, commit: Written, parents: list[str]) -> Any:
        """A commit is named as its metarange here: nobody asks for its record."""
        from datetime import UTC, datetime

        from mirrors.models import Commit, MirrorCommit

        made = Commit.objects.create(
            repository=self.mirror.source,
            sha=commit.metarange_id,
            parents=parents,
            creation_date=1_790_000_002,
            metarange_id=commit.metarange_id,
            generation=1 + len(parents),
            version=1,
            seen_at=datetime.now(UTC),
        )
        return MirrorCommit.objects.create(mirror=self.mirror, commit=made)


def main() -> None:
    """Sizes take turns, so that a busy machine does the same to all of them."""
    asked = parsed()
    os.environ.update(KEYS)
    with spark_at(asked.spark) as spark, fresh_database(), contextlib.ExitStack() as stack:
        os.environ["SPARK_REMOTE"] = spark.url
        runner.spark().warm_up()
        lakes = [stack.enter_context(lake(objects)) for objects in asked.objects]
        stack.enter_context(installations(lakes))
        told = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        print(f"{NAMES[COMPUTED]}; {told}; Spark: {asked.spark or 'as the service has it'}; SQLite")
        for one in lakes:
            began = time.perf_counter()
            cost = one.begin()
            print(f"{one.objects:9,} objects: the first commit took {cost.seconds:.1f} s, ", end="")
            print(f"{cost.asked}; made in {time.perf_counter() - began - cost.seconds:.1f} s", flush=True)
        for number in range(asked.commits):
            for one in lakes if number % 2 == 0 else reversed(lakes):
                one.near.append(one.change(near_each_other(one.objects), f"near-{number}", together=True))
        show(f"{CHANGES} changes under one prefix", lakes, lambda lake: lake.near)
        compare([median([cost.seconds for cost in one.near]) for one in lakes])
        for number in range(asked.scattered):
            for one in lakes if number % 2 == 0 else reversed(lakes):
                one.far.append(one.change(scattered(one.objects), f"far-{number}", together=False))
        show(f"{CHANGES} scattered changes", lakes, lambda lake: lake.far)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Validate commits of 100 changes in repositories of different sizes.")
    parser.add_argument("--objects", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--commits", type=int, default=9, help="of changes under one prefix; medians count")
    parser.add_argument("--scattered", type=int, default=3, help="commits of scattered changes")
    parser.add_argument("--spark", default="", help="a master or sc://..., whose executors know this bench's keys")
    return parser.parse_args()


@contextlib.contextmanager
def lake(objects: int) -> Iterator[Lake]:
    """A repository of so many objects with a server of its own."""
    with running_server(COMPUTED, objects) as server:
        mirror = add_mirror(f"lake-{objects}", f"region-{objects}", source=NAMESPACES[0], mirror=NAMESPACES[1])
        yield Lake(objects, server, mirror)


@contextlib.contextmanager
def installations(lakes: Sequence[Lake]) -> Iterator[None]:
    """Each mirror's region is at its own server; the source's isn't asked for anything."""
    from deployment.config import Installation, Store

    endpoints = {one.mirror.region: one.server.endpoint for one in lakes}

    def installation(region: str) -> Installation:
        store = Store("us-east-1", endpoints.get(region, lakes[0].server.endpoint), force_path_style=True)
        return Installation(region, store, lakefs=None)

    with mock.patch("deployment.wiring.region_settings.installation", installation):
        yield


def show(what: str, lakes: Sequence[Lake], costs: Callable[[Lake], list[Cost]]) -> None:
    """A line for each size."""
    print(f"{what}: seconds at the median (least to most), the check alone; what was read")
    for one in lakes:
        taken = costs(one)
        if not taken:
            continue
        seconds = sorted(cost.seconds for cost in taken)
        job = median([cost.job_seconds for cost in taken])
        last = taken[-1]
        print(
            f"{one.objects:9,} objects: {median(seconds):6.2f} ({seconds[0]:.2f} to {seconds[-1]:.2f}), job {job:.2f};"
            f" {last.ranges} changed ranges of {last.range_bytes / 1e6:.1f} MB, bases {last.base_bytes / 1e6:.1f} MB,"
            f" {median(seconds) / (last.range_bytes / 1e6):.3f} s per MB; {last.asked}"
        )


def compare(medians: Sequence[float]) -> None:
    ratio = max(medians) / min(medians)
    print(
        f"  the longest took {ratio:.2f} times the shortest (goal {GOAL}: {'reached' if ratio <= GOAL else 'missed'})"
    )


if __name__ == "__main__":
    main()
