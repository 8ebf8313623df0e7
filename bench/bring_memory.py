"""What a check that copies objects takes by the size of its repository: memory of a first copy, and of a commit of 100
changes, whose requests are counted too.

`python bench/bring_memory.py [--objects N ...] [--first N ...]`. Each figure comes from a process of its own, with a
store in another one that computes its objects. Nothing here fails on a slow machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from export_memory import peak
from lake import CHANGES, Written, changed_commit, first_commit, near_each_other
from two_buckets import COMPUTED, MIRROR, NAMES, PREFIX, SOURCE, Server, running_server
from validate import KEYS, REGION, expect

from adapters.s3.store import S3ObjectStore
from core.mirroring.check_planning import Data, plan_checks
from graveler.metarange import RangeRef
from spark_jobs.check.job import Work, check_batch
from spark_jobs.check.settings import Bring, CheckSettings, StoreLocation

GOAL = 1.5
HOST, OTHER_NAME = "127.0.0.1", "localhost"
"""Under another name the same server counts as another store, so that what is copied passes through LakeMirror."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """Resident memory in MB once everything is loaded, and at most."""

    loaded: float
    most: float


def main() -> None:
    """The sizes by turns; what grows, and whether it stays within the goal."""
    asked = parsed()
    os.environ.update(KEYS)
    if asked.endpoint:
        return copied(asked.endpoint)
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{NAMES[COMPUTED]}; {load}; resident memory in MB, loaded and at most", flush=True)
    compare("a first copy", [first_copy(objects) for objects in asked.first])
    compare(f"a commit of {CHANGES} changes", [changes(objects) for objects in asked.objects])


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Memory and requests of a check that copies, by size.")
    parser.add_argument("--objects", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--first", type=int, nargs="+", default=[50_000, 200_000], help="copied whole: takes a while")
    parser.add_argument("--endpoint", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def first_copy(objects: int) -> Peaks:
    """Everything is missing at the destination."""
    commit = first_commit(objects)
    with running_server(COMPUTED, objects, mirror_is_empty=True) as server:
        put(server, commit, SOURCE)
        return told(f"{objects:9,} objects, copied whole", server, work_of(commit), objects)


def changes(objects: int) -> Peaks:
    """The destination has all but what the last commit changed."""
    first = first_commit(objects)
    then = changed_commit(first, near_each_other(objects), "near", together=True)
    with running_server(COMPUTED, objects) as server:
        for bucket in (SOURCE, MIRROR):
            put(server, first, bucket)
        put(server, then, SOURCE)
        return told(f"{objects:9,} objects, {CHANGES} changed", server, work_of(then, first.refs), CHANGES)


def put(server: Server, commit: Written, bucket: str) -> None:
    store = S3ObjectStore(endpoint=server.endpoint, region=REGION, force_path_style=True)
    for key, data in commit.files().items():
        store.put(f"s3://{bucket}/{PREFIX}{key}", data)


def work_of(commit: Written, bases: Sequence[RangeRef] = ()) -> list[Work]:
    """As the validator plans it where the bases are covered."""
    checks = plan_checks(commit.refs, bases, {base.id: Data.COMPLETE for base in bases})
    return [(one.range_id, one.base_ids) for one in checks]


def told(what: str, server: Server, work: Sequence[Work], objects: int) -> Peaks:
    """What a process of its own took for this work; prints it."""
    server.counted()
    command = [sys.executable, __file__, "--endpoint", server.endpoint]
    began = time.monotonic()
    done = subprocess.run(command, check=True, input=json.dumps(work), stdout=subprocess.PIPE, text=True)
    seconds, asked_for = time.monotonic() - began, server.counted()
    found = json.loads(done.stdout.splitlines()[-1])
    expect("objects copied", found.pop("copied"), objects)
    peaks = Peaks(**found)
    print(f"{what}: {peaks.loaded:.0f}, {peaks.most:.0f}; {seconds:.1f} s with the start; {asked_for}", flush=True)
    return peaks


def compare(what: str, peaks: Sequence[Peaks]) -> None:
    ratio = max(one.most for one in peaks) / min(one.most for one in peaks)
    verdict = "reached" if ratio <= GOAL else "missed"
    print(f"  {what}: the most is {ratio:.2f} times the least (goal {GOAL}: {verdict})", flush=True)


def copied(endpoint: str) -> None:
    """In a process of its own: do the work that stands at the input, and tell what it took."""
    settings = CheckSettings(
        f"s3://{MIRROR}/{PREFIX.rstrip('/')}",
        REGION,
        endpoint,
        source=StoreLocation(f"s3://{SOURCE}/{PREFIX.rstrip('/')}", REGION, endpoint.replace(HOST, OTHER_NAME)),
        bring=Bring(time.time() + 24 * 3600),
    )
    work = [(range_id, tuple(bases)) for range_id, bases in json.load(sys.stdin)]
    loaded, ranges, objects = peak(), 0, 0
    for batch in check_batch(work, settings):
        rows = batch.to_pylist()
        expect("problems", sum(row["kind"] == "problem" for row in rows), 0)
        ranges += sum(row["kind"] == "range" for row in rows)
        objects += sum(row["copied"] or 0 for row in rows if row["kind"] == "bringing")
    expect("ranges copied", ranges, len(work))
    print(json.dumps({"loaded": loaded, "most": peak(), "copied": objects}))


if __name__ == "__main__":
    main()
