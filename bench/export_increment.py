"""An export's next run after 100 changes, beside tools that look through both buckets to find the same 100.

`python bench/export_increment.py [--objects N ...] [--rounds N] [--scattered N] [--s5cmd PROGRAM] [--rclone PROGRAM]`.
With `--states N` instead: what N such runs write at the status path and into the database, by the mode of the manifest.
The export's duty works on real tables (SQLite, in a folder of its own); everybody asks one store, which computes its
objects. Nothing here fails on a slow machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any
from unittest import mock

from lake import CHANGES, Written, changed_commit, first_commit, near_each_other, scattered
from local_deployment import fresh_database, run_duty
from two_buckets import COMPUTED, MIRROR, NAMES, PREFIX, SOURCE, Counted, Server, running_server
from validate import KEYS, REGION, expect, spark_at

from adapters.s3.store import S3ObjectStore
from core.types import BranchHead, Commit, Page, RepositoryInfo

GOAL, GOAL_FROM = 20.0, 1_000_000
NAMESPACE = f"s3://{SOURCE}/{PREFIX.rstrip('/')}"
TO = f"s3://{MIRROR}/latest"
CREATED = 1_790_000_000
Tool = Callable[[Server], None]


@dataclass(frozen=True, slots=True)
class Figure:
    """Seconds on the clock, and of the processor: of who worked, and of the store."""

    seconds: float
    processor: float
    asked: Counted


@dataclass
class Installation:
    """A lakeFS with one branch. A commit is named as its metarange."""

    head: str = ""

    def get_repository(self, name: str) -> RepositoryInfo:
        return RepositoryInfo(name, NAMESPACE, "main", CREATED)

    def get_branch(self, repository: str, branch: str) -> BranchHead:
        return BranchHead(branch, self.head)

    def get_commit(self, repository: str, commit_id: str) -> Commit:
        return Commit(commit_id, (), "etl", "100 changes", CREATED, metarange_id=commit_id)

    def log_commits(self, repository: str, ref: str, *, amount: int) -> Page[Commit]:
        return Page([self.get_commit(repository, ref)], "")


@dataclass
class Lake:
    """A repository whose first commit is exported. Each change is there for whoever's turn it is."""

    objects: int
    server: Server
    installation: Installation
    export: Any = None
    first: Written = field(init=False)
    made: int = 0

    def begin(self) -> None:
        """The rows as a first run leaves them; what lies at the destination no later run asks."""
        from exports.models import Export
        from jobs import duties

        self.first = first_commit(self.objects)
        self.put(SOURCE, self.first.files())
        self.installation.head = self.first.metarange_id
        self.export = Export.objects.create(
            region=REGION,
            repository=f"lake-{self.objects}",
            branch="main",
            creation_date=CREATED,
            storage_namespace=NAMESPACE,
            path=TO,
            continuous=True,
            state=Export.State.SUCCESS,
            last_success_ref=self.first.metarange_id,
            path_at_success=TO,
            created_at="2026-01-01T00:00:00Z",
            changed_at="2026-01-01T00:00:00Z",
        )
        duties.ensure("export", -self.export.pk, REGION)

    def put(self, bucket: str, files: Mapping[str, bytes]) -> None:
        store = S3ObjectStore(endpoint=self.server.endpoint, region=REGION, force_path_style=True)
        for key, data in files.items():
            store.put(f"s3://{bucket}/{PREFIX}{key}", data)

    def export_changes(self, numbers: Sequence[int], *, together: bool) -> Figure:
        """A commit of these changes, and the run that brings it to the destination."""
        self.made += 1
        commit = changed_commit(self.first, numbers, f"ours-{self.made}", together=together)
        self.put(SOURCE, commit.files())
        self.installation.head = commit.metarange_id
        figure = measured(self.server, self._run)
        run = self.export.runs.first()
        expect(f"files copied, the run being {run.outcome}: {run.error}", run.copied, len(numbers))
        self.put(MIRROR, commit.objects)  # so that nobody else finds them lacking
        return figure

    def go_back(self) -> None:
        """The first commit is exported again."""
        self.installation.head = self.first.metarange_id
        self._run()

    def _run(self) -> None:
        """Round by round, as a worker has it: the look at the branch, then the run."""
        for _ in range(20):
            run_duty("export", -self.export.pk)
            self.export.refresh_from_db()
            if self.export.last_success_ref == self.installation.head:
                return
        raise SystemExit(f"not exported: {self.export.state} {self.export.error}")

    def sync_changes(self, tool: Tool) -> Figure:
        """Another 100 objects at the source, and a tool that finds and copies them."""
        self.made += 1
        changed = changed_commit(
            self.first, near_each_other(self.objects), f"theirs-{self.made}", together=True
        ).objects
        self.put(SOURCE, changed)
        figure = measured(self.server, partial(tool, self.server))
        store = S3ObjectStore(endpoint=self.server.endpoint, region=REGION, force_path_style=True)
        there = [store.head(f"s3://{MIRROR}/{PREFIX}{key}") for key in changed]
        expect("objects that arrived", sum(one is not None for one in there), len(changed))
        return figure


def main() -> None:
    """Everybody in turns, one size after the other."""
    asked = parsed()
    os.environ.update(KEYS)
    with spark_at("") if asked.scattered else contextlib.nullcontext() as spark, fresh_database():
        if spark is not None:
            os.environ["SPARK_REMOTE"] = spark.url
        print(f"{NAMES[COMPUTED]}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; SQLite", flush=True)
        for objects in asked.objects:
            with running_server(COMPUTED, objects) as server, deployed(server) as installation:
                lake = Lake(objects, server, installation)
                measure_states(lake, asked.states) if asked.states else compare(lake, asked)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Export 100 changes, and compare with what finds them by listing.")
    parser.add_argument("--objects", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3, help="of everybody by turns; medians count")
    parser.add_argument("--scattered", type=int, default=0, help="runs of changes all over the commit (by Spark)")
    parser.add_argument("--states", type=int, default=0, help="runs, of which the bytes of states are told by mode")
    parser.add_argument("--s5cmd", default=shutil.which("s5cmd") or "")
    parser.add_argument("--rclone", default=shutil.which("rclone") or "")
    return parser.parse_args()


@contextlib.contextmanager
def deployed(server: Server) -> Iterator[Installation]:
    """This process works for one region, whose store is the server."""
    from deployment import config
    from deployment.config_sections import StoreCredentials
    from deployment.wiring import clients
    from spark_jobs.check.settings import store_at

    keys = StoreCredentials(KEYS["AWS_ACCESS_KEY_ID"], config.Secret(KEYS["AWS_SECRET_ACCESS_KEY"]))
    store, made = config.Store(REGION, server.endpoint, True, keys), Installation()
    with (
        mock.patch.object(config.Config, "store", lambda self, region: store),
        mock.patch("deployment.wiring.clients.lakefs", lambda region: made),
    ):
        for kept in (clients._objects, clients._fast, store_at):
            kept.cache_clear()
        yield made


def compare(lake: Lake, asked: argparse.Namespace) -> None:
    """Prints what each took, and how many times as long as ours."""
    lake.begin()
    near = partial(lake.export_changes, near_each_other(lake.objects), together=True)
    near()  # a running worker has loaded what it needs
    runs: dict[str, Callable[[], Figure]] = {"LakeMirror": near}
    tools: dict[str, Callable[[str], Tool]] = {"s5cmd sync": s5cmd, "rclone sync": rclone}
    for name, make in tools.items():
        if program := getattr(asked, name.split()[0]):
            runs[name] = partial(lake.sync_changes, make(program))
    took: dict[str, list[Figure]] = {name: [] for name in runs}
    for turn in range(asked.rounds):
        for name in list(runs)[:: 1 if turn % 2 == 0 else -1]:
            took[name].append(runs[name]())
    print(f"{lake.objects:,} objects in {len(lake.first.refs)} ranges, {CHANGES} changes")
    for name, figures in took.items():
        goal = GOAL if lake.objects >= GOAL_FROM and name != "LakeMirror" else 0.0
        tell(name, figures, took["LakeMirror"], goal)
    if asked.scattered:
        lake.go_back()
        far = [lake.export_changes(scattered(lake.objects), together=False) for _ in range(asked.scattered)]
        tell("LakeMirror, scattered", far, took["LakeMirror"])


def measure_states(lake: Lake, runs: int) -> None:
    """Prints what is written beside the data, by the mode of the manifest: in all, and per run once it is there."""
    lake.begin()
    near = partial(lake.export_changes, near_each_other(lake.objects), together=True)
    near()
    print(f"{lake.objects:,} objects, {runs} runs of {CHANGES} changes: bytes written at the status path")
    for mode in ("always", "daily", "never"):
        folder = f"states-{mode}"
        lake.export.manifest, lake.export.status_path = mode, f"s3://{MIRROR}/{folder}"
        lake.export.save(update_fields=["manifest", "status_path"])
        before, written = database_bytes(), [near().asked.put[f"{MIRROR}/{folder}"] for _ in range(runs)]
        stored = (database_bytes() - before) // runs
        enough = 100 * sum(written) // runs // CHANGES
        line = f"  {mode:7} {sum(written):13,} in all; the first run {written[0]:,}, the last one {written[-1]:,}"
        print(f"{line}; below 1 % with {enough:,} bytes a changed file; database {stored:,} a run", flush=True)


def database_bytes() -> int:
    """How large the tables are."""
    from django.db import connection

    with connection.cursor() as cursor:
        pages, free, size = (_pragma(cursor, name) for name in ("page_count", "freelist_count", "page_size"))
    return (pages - free) * size


def _pragma(cursor: Any, name: str) -> int:
    cursor.execute(f"PRAGMA {name}")
    return int(cursor.fetchone()[0])


def measured(server: Server, run: Callable[[], None]) -> Figure:
    server.counted()
    began, used = time.perf_counter(), processor()
    run()
    seconds, own, asked = time.perf_counter() - began, processor() - used, server.counted()
    return Figure(seconds, own + asked.processor, asked)


def processor() -> float:
    """Of this process and of programs that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def tell(name: str, figures: Sequence[Figure], ours: Sequence[Figure], goal: float = 0.0) -> None:
    """The medians, and beside ours how many times as much."""
    seconds, spent = _medians(figures)
    line = f"  {name:22} {seconds:8.2f} s, processor with the store's {spent:7.2f} s; {figures[-1].asked}"
    if figures is not ours:
        times, more = seconds / _medians(ours)[0], spent / _medians(ours)[1]
        line += f"\n{'':25}{times:.1f} times as long, {more:.1f} times the processor"
        line += f"; goal {goal:g}: {'reached' if times >= goal else 'missed'}" if goal else ""
    print(line, flush=True)


def _medians(figures: Sequence[Figure]) -> tuple[float, float]:
    return median(one.seconds for one in figures), median(one.processor for one in figures)


# --- the others -------------------------------------------------------------------------------------------------------


def s5cmd(program: str) -> Tool:
    """As its README has it, with its 256 workers."""

    def sync(server: Server) -> None:
        places = f"s3://{SOURCE}/{PREFIX}data/*", f"s3://{MIRROR}/{PREFIX}data/"
        command = [program, "--log", "error", "--endpoint-url", server.endpoint, "sync", *places]
        subprocess.run(command, check=True, env=os.environ | {"AWS_REGION": REGION})

    return sync


def rclone(program: str) -> Tool:
    """Tuned: ETags are compared, for times of change would cost a HEAD per object; whole listings, many requests."""

    def sync(server: Server) -> None:
        remote = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": server.endpoint, "REGION": REGION, "ENV_AUTH": "true"}
        told = {f"RCLONE_CONFIG_BENCH_{name}": value for name, value in (remote | {"LIST_VERSION": "2"}).items()}
        kept = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
        places = f"bench:{SOURCE}/{PREFIX}data", f"bench:{MIRROR}/{PREFIX}data"
        options = ["--checksum", "--fast-list", "--checkers", "64", "--transfers", "64", "--s3-no-check-bucket", "-q"]
        subprocess.run([program, "--config", os.devnull, "sync", *places, *options], check=True, env=kept | told)

    return sync


if __name__ == "__main__":
    main()
