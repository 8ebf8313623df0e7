"""A rule's first copy between two stores, ledger and statuses included, beside rclone; and a look that finds nothing.

`python bench/replicate.py [--source http://key:secret@host:port --store URL] [--small 10000] [--large 80]
[--rounds 1] [--rclone PROGRAM]`. Without URLs a pair of MinIO servers is started, whose program LAKEMIRROR_TEST_MINIO
names. One process does all that a rule's two duties do, on tables of its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

from export_copy import LARGE_BYTES, SMALL_BYTES, Figure, medians, tell
from first_copy import Commit, Store, filled, measured, rclone, rclone_environment, servers
from local_deployment import fresh_database, run_duty

HOME, AWAY = "us-east-1", "eu-west-1"
WORKERS = 16


def main() -> None:
    """The sizes by turns, each into a bucket of its own; then a whole comparison of what is equal."""
    asked = parsed()
    with servers(asked.source, asked.store) as (source, store), fresh_database(), wired(source, store):
        told = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        print(f"{asked.source.rpartition('@')[2] or 'a pair of MinIO servers'}; {told}", flush=True)
        for count, size in ((asked.small, SMALL_BYTES), (asked.large, LARGE_BYTES)):
            if count:
                commit = filled(source, count, size, 1)
                compare(commit, store, size, asked)
                source.remove(commit.bucket)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", default="", help="http://key:secret@host:port")
    parser.add_argument("--store", default="", help="the same of the target, with the same keys")
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--rclone", default=shutil.which("rclone") or "")
    return parser.parse_args()


@contextmanager
def wired(source: Store, store: Store) -> Iterator[None]:
    """Both regions, with a store each."""
    clients = {HOME: source.client(), AWAY: store.client()}
    with (
        mock.patch("deployment.wiring.replication_jobs._store", lambda region, workers: clients[region]),
        mock.patch("deployment.wiring.clients.quick_bulk_objects", lambda region: clients[region]),
        mock.patch("deployment.wiring.replication_jobs.is_one_store", lambda *_: False),
    ):
        yield


def compare(commit: Commit, store: Store, size: int, asked: argparse.Namespace) -> None:
    """Everybody copies the same objects, in turns, each time to another bucket; then what is equal is compared."""
    runs: dict[str, Callable[[str], float]] = {"ours": partial(copied, commit)}
    runs |= {"rclone": partial(rclone, commit, store, asked.rclone)} if asked.rclone else {}
    took: dict[str, list[Figure]] = {name: [] for name in runs}
    for turn in range(asked.rounds):
        for name in list(runs)[:: 1 if turn % 2 == 0 else -1]:
            took[name].append(measured(commit, store, runs[name]))
    tell(len(commit.addresses), size, {name: medians(figures) for name, figures in took.items()})
    if asked.rclone:
        ours, theirs = compared(commit, store, asked.rclone)
        print(f"  compared when all is equal: ours {ours:.2f} s, rclone check {theirs:.2f} s", flush=True)


def copied(commit: Commit, bucket: str, **more: Any) -> float:
    """Let the duties of a rule run until its target is up to date; seconds of the processor. `more`: as of `made`."""
    from replication.models import OpenObject, Rule

    rule, link = made(commit, bucket, **more)
    used = 0.0
    while Rule.objects.get(pk=rule).full_ended_at is None or OpenObject.objects.filter(link=link).exists():
        used += run_duty("replication-scan", -rule).process
        used += run_duty("replication-link", -link).process
    return used


def made(commit: Commit, bucket: str, *, versions: str = "latest", exact: bool | None = None) -> tuple[int, int]:
    """The keys of a new rule and of its link. `exact`: where all versions are copied, whether they keep their ids."""
    from db import clock
    from replication.models import Link, Rule
    from replication.transitions import duties, shards

    now = clock.now()
    place = {"region": HOME, "uri": f"s3://{commit.bucket}/data"}
    values = {**place, "metadata": "all", "versions": versions, "created_at": now, "changed_at": now}
    rule = Rule.objects.create(name=bucket, **values)
    there = {"region": AWAY, "uri": f"s3://{bucket}/data", "workers": WORKERS, "exact": exact}
    link = Link.objects.create(rule=rule, number=1, **there)
    shards.begin(rule, now)
    duties.ensure(rule)
    return rule.pk, link.pk


def compared(commit: Commit, store: Store, program: str) -> tuple[float, float]:
    """Seconds that a rule's look and rclone take to find two places equal."""
    bucket = store.make("equal")
    rclone(commit, store, program, bucket)
    rule, link = made(commit, bucket)
    ours = run_duty("replication-scan", -rule).clock
    from replication.models import OpenObject, Rule

    if OpenObject.objects.filter(link=link).exists() or Rule.objects.get(pk=rule).full_ended_at is None:
        raise SystemExit("the comparison did not find all equal, or did not end in one round")
    places = [f"source:{commit.bucket}/data", f"store:{bucket}/data"]
    began = time.monotonic()
    command = [program, "check", *places, "--checkers", "16"]
    subprocess.run(command, check=True, env=rclone_environment(commit.source, store), stderr=subprocess.DEVNULL)
    theirs = time.monotonic() - began
    store.remove(bucket)
    return ours, theirs


if __name__ == "__main__":
    main()
