"""From a commit at the source until the mirror's branch contains it, and where the time goes.

`python bench/latency.py [--managed] [--rate N] [--commits N | --minutes N]` starts a demo of its own, lets its
company rest and commits one to three small objects at a time. The source's webhook tells of each commit, replication
has no delay, Spark is warm. With `--managed` it measures the mirror whose objects LakeMirror copies itself. Nothing
here fails on a slow machine.
"""

from __future__ import annotations

import argparse
import os
import random
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from demo import BRANCH, MIRROR, REPOSITORY, Demo, running_demo

from sandbox.lakefs_http import LakeFS

POLL_SECONDS = 0.02
PATIENCE_SECONDS = 30.0
WARM_UP = 5
SHOWN = 8

STAGES = ("sensed", "record copied", "metadata arrived", "validated", "promoted")
STAGES_QUERY = """
    SELECT "commit".sha, "commit".seen_at, at.recorded_at, at.metadata_at, at.validated_at,
           coalesce(at.promoted_at, at.superseded_at)
    FROM mirrors_mirrorcommit at JOIN mirrors_commit "commit" ON "commit".id = at.commit_id
    JOIN mirrors_mirror mirror ON mirror.id = at.mirror_id WHERE mirror.name = ?
"""
JOBS_QUERY = "SELECT started_at, ended_at FROM mirrors_run WHERE outcome = 'done' AND started_at >= ? ORDER BY id"


@dataclass(frozen=True, slots=True)
class Measured:
    """A mirror of the demo, its source, the regions of both by number, and the goal: seconds, 95th percentile."""

    mirror: str
    repository: str
    source: int
    destination: int
    goal: float


NATIVE = Measured(MIRROR, REPOSITORY, 0, 1, 2.0)
MANAGED = Measured("orders-us", "orders", 1, 0, 1.5)


@dataclass(frozen=True, slots=True)
class Made:
    """A commit at the source, and when its response had come (seconds since the epoch)."""

    commit_id: str
    at: float


class Watch:
    """Notes when a branch of a lakeFS points to another commit."""

    def __init__(self, lakefs: LakeFS, mirror: str) -> None:
        self.seen: list[tuple[float, str]] = []
        self._lakefs, self._mirror, self._stop = lakefs, mirror, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            head = self._lakefs.head(self._mirror, BRANCH)
            if not self.seen or self.seen[-1][1] != head:
                self.seen.append((time.time(), head))

    def has(self, commit_id: str) -> bool:
        """Did the branch ever point to it?"""
        return any(head == commit_id for _, head in self.seen)


def main() -> None:
    """Measures and prints a table."""
    arguments = parsed()
    with running_demo(log=arguments.log) as demo:
        which = MANAGED if arguments.managed else NATIVE
        settle(demo, which)
        with Watch(demo.lakefs(which.destination), which.mirror) as watch:
            work(demo, which, watch, WARM_UP, arguments.rate, seed=0)
            began = datetime.now(UTC)
            made = work(demo, which, watch, arguments.commits, arguments.rate, seed=1)
        measured = delays(made, watch.seen)
        print_figures(which, made, measured)
        stages = stages_of(made, demo.rows(STAGES_QUERY, which.mirror))
        print_stages(list(stages.values()))
        print_slowest(made, measured, stages)
        print_jobs(demo.rows(JOBS_QUERY, began.strftime("%Y-%m-%d %H:%M:%S.%f")))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure from a commit until the mirror's branch contains it.")
    parser.add_argument("--commits", type=int, default=50)
    parser.add_argument("--minutes", type=float, help="commit for so long, in place of --commits")
    parser.add_argument("--rate", type=float, default=1.0, help="commits per second")
    parser.add_argument("--managed", action="store_true", help="the mirror whose objects LakeMirror copies itself")
    parser.add_argument("--log", type=Path, metavar="FILE", help="keep what the demo prints")
    asked = parser.parse_args()
    if asked.minutes:
        asked.commits = round(asked.minutes * 60 * asked.rate)
    return asked


# Work


def settle(demo: Demo, which: Measured) -> None:
    """Wait for the whole demo, let its company rest, and let the mirror catch up with what it did."""
    demo.wait(demo.is_prepared, "everything is prepared")
    demo.sandbox.pause_company()
    source, destination = demo.lakefs(which.source), demo.lakefs(which.destination)

    def is_even() -> bool:
        return destination.branches(which.mirror) == source.branches(which.repository)

    demo.wait(is_even, "the mirror has caught up", every=0.5)


def work(demo: Demo, which: Measured, watch: Watch, commits: int, rate: float, *, seed: int) -> list[Made]:
    """Commit so many times, so many a second, late ones at once; come back when the mirror has the last one."""
    source, chance = demo.lakefs(which.source), random.Random(seed)
    made = []
    began = time.monotonic()
    for number in range(commits):
        time.sleep(max(0.0, began + number / rate - time.monotonic()))
        made.append(commit(source, which.repository, chance, number))
    demo.wait(lambda: watch.has(made[-1].commit_id), "the last commit is at the mirror", seconds=PATIENCE_SECONDS)
    return made


def commit(source: LakeFS, repository: str, chance: random.Random, number: int) -> Made:
    """One to three small objects and their commit."""
    for part in range(chance.randint(1, 3)):
        source.upload(
            repository, BRANCH, f"bench/{chance.randrange(20):02}/{part}.csv", chance.randbytes(200).hex().encode()
        )
    commit_id = source.commit(repository, BRANCH, f"Measured commit {number}", {})
    return Made(commit_id, time.time())


# Figures


def delays(made: Sequence[Made], seen: Iterable[tuple[float, str]]) -> list[float]:
    """Seconds from each response until the branch pointed to the commit or to a later one."""
    place = {one.commit_id: number for number, one in enumerate(made)}
    moves = [(at, place[head]) for at, head in seen if head in place]
    return [next(at for at, reached in moves if reached >= number) - one.at for number, one in enumerate(made)]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is no less than this share of all values."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 100) * len(ordered) // 100) - 1)]


def line(values: Sequence[float]) -> str:
    """Least, median, 95th percentile and most."""
    return "".join(
        f"{value:9.2f}" for value in (min(values), percentile(values, 0.5), percentile(values, 0.95), max(values))
    )


def print_figures(which: Measured, made: Sequence[Made], measured: Sequence[float]) -> None:
    reached = percentile(measured, 0.95)
    verdict = "reached" if reached <= which.goal else "missed"
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    pace = f"{(len(made) - 1) / (made[-1].at - made[0].at):.2f} a second"
    copied = "copied by LakeMirror" if which is MANAGED else "replication delay 0"
    print(f"{which.mirror}: {len(made)} commits, {pace}, {copied}, Spark warm; {os.cpu_count()} cores, load {load}")
    print(f"seconds after the commit's response{'min':>7}{'p50':>9}{'p95':>9}{'max':>9}")
    print(f"{'at the mirror, seen from outside':<33}{line(measured)}   goal p95 <= {which.goal:g}: {verdict}")


def stages_of(made: Sequence[Made], rows: Iterable[Sequence[object]]) -> dict[str, list[float]]:
    """By commit: seconds after its response at which each stage was written down; the last one may be on its way."""
    at = {one.commit_id: one.at for one in made}
    told = {str(sha): values for sha, *values in rows if sha in at and None not in values}
    return {sha: [moment(value) - at[sha] for value in values] for sha, values in told.items()}


def print_stages(stages: Sequence[Sequence[float]]) -> None:
    """When each stage was written down. Copying and validation run side by side."""
    for number, name in enumerate(STAGES):
        print(f"  {name:<31}{line([stage[number] for stage in stages])}")


def print_slowest(made: Sequence[Made], measured: Sequence[float], stages: Mapping[str, Sequence[float]]) -> None:
    """Where the time of the slowest ones went; those right before and after often waited for the same thing."""
    ranking = sorted(range(len(made)), key=lambda number: -measured[number])
    print(f"the slowest: number, seconds; {', '.join(STAGES)}")
    for number in ranking[:SHOWN]:
        told = ", ".join(f"{value:.2f}" for value in stages.get(made[number].commit_id, ()))
        print(f"  {number:5} {measured[number]:7.2f};  {told}")


def print_jobs(rows: Sequence[Sequence[object]]) -> None:
    if rows:
        seconds = [moment(ended) - moment(began) for began, ended in rows]
        print(f"{f'one check, of {len(rows)}':<33}{line(seconds)}")


def moment(text: object) -> float:
    """Seconds since the epoch of a timestamp in the database."""
    return datetime.fromisoformat(str(text)).replace(tzinfo=UTC).timestamp()


if __name__ == "__main__":
    main()
