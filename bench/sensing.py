"""The commit sensor and the copying of records, without any network: what LakeMirror itself needs.

`python bench/sensing.py [--branches N] [--commits N] [--looks N]` uses real tables (SQLite, in a folder of its own) and
installations that answer at once from memory. Nothing here fails on a slow machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from statistics import median
from unittest import mock

from local_deployment import Took, add_mirror, fresh_database, run_duty

from core.types import BranchHead, Commit, Page, RecordOutcome, RepositoryInfo
from graveler.identity import commit_id

GOAL_SECONDS = 0.05
MESSAGE = "nightly load of the orders, all partitions of the day; see the run's page for what was left out"


class Source:
    """A lakeFS with one repository, which counts requests. Commit n is computed from its number, not kept.

    A line of commits; every tenth one merges a branch of one commit, which no branch points to any more.
    """

    def __init__(self, commits: int, branches: int) -> None:
        self.calls: Counter[str] = Counter()
        self.ids: list[str] = []
        self.number: dict[str, int] = {}
        for _ in range(commits):
            self.grow()
        self.heads = {f"branch-{n:04}": self.ids[-1] for n in range(branches - 1)} | {"main": self.ids[-1]}

    def grow(self) -> str:
        """One more commit."""
        number = len(self.ids)
        self.ids.append(self.record(number).id)
        self.number[self.ids[-1]] = number
        return self.ids[-1]

    def parents(self, number: int) -> tuple[str, ...]:
        if number == 0:
            return ()
        if number % 10 == 9:
            return (self.ids[number - 2],)
        if number % 10 == 0:
            return (self.ids[number - 2], self.ids[number - 1])
        return (self.ids[number - 1],)

    def record(self, number: int) -> Commit:
        fields = {
            "committer": "etl",
            "message": f"{MESSAGE} {number}",
            "metarange_id": f"{number:064x}",
            "creation_date": 1_790_000_000 + number,
            "metadata": {"run": str(number), "source": "bench"},
            "parents": self.parents(number),
        }
        return Commit(id=commit_id(**fields), generation=number + 1, version=1, **fields)

    # What the loops ask

    def list_repositories(self, *, prefix: str = "", after: str = "", amount: int = 1000) -> Page[RepositoryInfo]:
        self.calls["list_repositories"] += 1
        return Page([self.get_repository("lake")])

    def get_repository(self, repository: str) -> RepositoryInfo:
        return RepositoryInfo(repository, "s3://src/lake", "main", 1_790_000_000)

    def list_branches(
        self, repository: str, *, after: str = "", amount: int = 1000, hidden: bool = True
    ) -> Page[BranchHead]:
        self.calls["list_branches"] += 1
        names = sorted(name for name in self.heads if name > after)
        page = [BranchHead(name, self.heads[name]) for name in names[:amount]]
        return Page(page, page[-1].name if len(names) > amount else "")

    def log_commits(self, repository: str, start: str, *, after: str = "", amount: int = 1000) -> Page[Commit]:
        self.calls["log_commits"] += 1
        last = self.number[after] - 1 if after else self.number[start]
        first = max(0, last - amount + 1)
        page = [self.record(number) for number in range(last, first - 1, -1)]
        return Page(page, page[-1].id if first else "")


class Destination:
    """A lakeFS that takes every record and keeps none; it checks that parents come first."""

    def __init__(self) -> None:
        self.lock, self.there, self.early = threading.Lock(), set[bytes](), 0

    def get_repository(self, repository: str) -> RepositoryInfo:
        return RepositoryInfo(repository, "s3://dst/lake", "main", 1_790_000_001, read_only=True)

    def put_commit_record(self, repository: str, commit: Commit) -> RecordOutcome:
        with self.lock:
            self.early += sum(bytes.fromhex(parent) not in self.there for parent in commit.parents)
            self.there.add(bytes.fromhex(commit.id))
        return RecordOutcome.CREATED


def main() -> None:
    """Measures each part in a process of its own, so that its peak of memory is its own too."""
    arguments = parsed()
    if arguments.part:
        with fresh_database():
            part(arguments)
        return
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"SQLite, installations in memory that answer at once; {os.cpu_count()} cores, load {load}")
    own_process("looks", arguments.commits[-1], arguments)
    for commits in arguments.commits:
        own_process("first", commits, arguments)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure sensing and the copying of records, without the network.")
    parser.add_argument("--branches", type=int, default=1000, help="of the source that is looked at")
    parser.add_argument("--looks", type=int, default=20)
    parser.add_argument("--commits", type=int, nargs="+", default=[2000, 20_000], help="of first copies to compare")
    parser.add_argument("--part", choices=["looks", "first"], help=argparse.SUPPRESS)
    return parser.parse_args()


def own_process(part: str, commits: int, arguments: argparse.Namespace) -> None:
    options = ["--part", part, "--commits", commits, "--branches", arguments.branches, "--looks", arguments.looks]
    subprocess.run([sys.executable, __file__, *map(str, options)], check=True)


def part(arguments: argparse.Namespace) -> None:
    if arguments.part == "looks":
        measure_looks(arguments.branches, arguments.looks)
    else:
        measure_first_copy(arguments.commits[0])


def run(kind: str, source: Source, destination: Destination) -> Took:
    """Let a duty of the one mirror run against these installations."""
    from jobs.models import Duty
    from mirroring import copy_records  # noqa: F401  a worker has loaded its duties' code long before
    from mirroring.sense import branches  # noqa: F401

    sides = {"us-east-1": source, "eu-west-1": destination}
    with mock.patch("deployment.wiring.clients.lakefs", sides.get):
        return run_duty(kind, Duty.objects.get(kind=kind).subject)


# Figures


def measure_looks(branches: int, looks: int) -> None:
    source, destination = Source(100, branches), Destination()
    add_mirror()
    run("sense", source, destination)
    source.calls.clear()
    idle = [run("sense", source, destination) for _ in range(looks)]
    print_looks(f"{branches} branches, none changed", idle, source.calls)
    source.calls.clear()
    busy = []
    for number in range(looks):
        source.heads[f"branch-{number % (branches - 1):04}"] = source.grow()
        busy.append(run("sense", source, destination))
    print_looks(f"{branches} branches, one changed", busy, source.calls)
    verdict = "reached" if median([one.clock for one in busy]) <= GOAL_SECONDS else "missed"
    print(f"  goal: {1000 * GOAL_SECONDS:.0f} ms on the clock at the median: {verdict}")


def print_looks(what: str, looks: Sequence[Took], calls: Counter[str]) -> None:
    asked = ", ".join(f"{count / len(looks):g} {name}" for name, count in sorted(calls.items()))
    clock, process = (1000 * median([getattr(one, name) for one in looks]) for name in ("clock", "process"))
    print(f"{what}: {clock:.1f} ms on the clock at the median of {len(looks)}, {process:.1f} ms of the processor")
    print(f"  requests a look: {asked}")


def measure_first_copy(commits: int) -> None:
    source, destination = Source(commits, 1), Destination()
    add_mirror()
    before = peak()
    sensed = run("sense", source, destination)
    after_sense = peak()
    copied = run("copy", source, destination)
    check(commits, destination)
    print(f"first copy of {commits} commits, a merge in ten")
    print(f"  sense {rates(commits, sensed)}, {source.calls['log_commits']} pages of the log")
    print(f"  copy  {rates(commits, copied)}")
    print(f"  peak memory {before:.0f} MB before, {after_sense:.0f} MB after sensing, {peak():.0f} MB after copying")


def rates(commits: int, took: Took) -> str:
    return f"{commits / took.clock:7.0f} commits/s ({commits / took.process:.0f} per second of the processor)"


def check(commits: int, destination: Destination) -> None:
    """A figure of something that went wrong is none."""
    from mirrors.models import MirrorCommit

    accepted = MirrorCommit.objects.filter(record="accepted").count()
    if accepted < commits - 1 or destination.early:
        raise SystemExit(f"{accepted} of {commits} records accepted, {destination.early} parents were not there yet")


def peak() -> float:
    """The most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
