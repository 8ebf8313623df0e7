"""The pages over many mirrors: what the server takes for one, in how many queries, and how large a poll's answer is.

`python bench/pages.py [--mirrors 1000] [--branches 50] [--requests 20] [--profile PAGE]` fills real tables (SQLite, in
a folder of its own) with rows as the duties leave them, and asks for each page by Django's own client: no network, no
gunicorn. Of the mirrors one in twenty is behind with three branches, and one in a hundred is blocked. Nothing here
fails on a slow machine.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from local_deployment import fresh_database

GOAL_SECONDS = 0.1
GOAL_BYTES = 10_000
REGIONS = ("eu-west-1", "ap-south-1", "us-west-2", "sa-east-1")
PAGES = {
    "overview": "/",
    "list": "/mirrors/",
    "list, filtered": "/mirrors/?state=blocked&region=ap-south-1",
    "mirror": "/mirrors/lake-0001/",
    "jobs": "/jobs/",
}
METRICS = "/metrics"
PAUSE_SECONDS = 0.3
"""Between requests, so that what a process keeps grows old among them as it does among polls."""
POLL = {"HX-Request": "true", "HX-Target": "live"}


def make_id(text: str) -> str:
    """Sixty-four hex digits that always belong to the same text."""
    return sha256(text.encode()).hexdigest()


class Fleet:
    """Rows of many mirrors, a source each, some hundreds of thousands of them at once."""

    def __init__(self, mirrors: int, branches: int) -> None:
        self.number, self.branches = mirrors, branches
        self.now = datetime.now(UTC)

    def ago(self, seconds: float) -> datetime:
        return self.now - timedelta(seconds=seconds)

    def store(self) -> None:
        """Everything. Keys are given by the tables in the order of the rows."""
        from django.db import transaction

        with transaction.atomic():
            self.store_mirrors()
            self.store_branches()
            self.store_work()
            self.store_blockers()

    def store_mirrors(self) -> None:
        from mirrors.models import Mirror, Repository

        numbers = range(self.number)
        self.sources = Repository.objects.bulk_create(
            Repository(
                region="us-east-1",
                name=f"source-{n:04}",
                storage_namespace=f"s3://src/{n}",
                creation_date=1_790_000_000,
                default_branch="branch-00",
                looked_at=self.ago(3),
            )
            for n in numbers
        )
        self.mirrors = Mirror.objects.bulk_create(
            Mirror(
                name=f"lake-{n:04}",
                source=self.sources[n],
                region=REGIONS[n % len(REGIONS)],
                storage_namespace=f"s3://dst/{n}",
                state="active",
                destination_looked_at=self.ago(5),
                last_validated_at=self.ago(120),
            )
            for n in numbers
        )

    def ahead(self, n: int, branch: int) -> bool:
        """Whether the source has a commit there that the mirror has not."""
        return n % 20 == 1 and branch < 3

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Mirror, branch and number of a commit: two on each branch, three where the mirror is behind."""
        for n in range(self.number):
            for branch in range(self.branches):
                yield from ((n, branch, at) for at in range(3 if self.ahead(n, branch) else 2))

    def store_branches(self) -> None:
        from mirrors.models import Candidate, Commit, MirrorBranch, MirrorCommit, SourceBranch

        def sha(n: int, branch: int, at: int) -> str:
            return make_id(f"{n} {branch} {at}")

        names = [(n, branch) for n in range(self.number) for branch in range(self.branches)]
        there = SourceBranch.objects.bulk_create(
            SourceBranch(
                repository=self.sources[n],
                name=f"branch-{branch:02}",
                head=sha(n, branch, 2 if self.ahead(n, branch) else 1),
                position=2 if self.ahead(n, branch) else 1,
                changed_at=self.ago(200),
            )
            for n, branch in names
        )
        rows = dict(zip(names, there, strict=True))
        MirrorBranch.objects.bulk_create(
            MirrorBranch(
                mirror=self.mirrors[n],
                name=f"branch-{branch:02}",
                head=sha(n, branch, 1),
                position=1,
                advanced_at=self.ago(180),
                proven=True,
            )
            for n, branch in names
        )
        self.commits = dict(
            zip(
                self.places(),
                Commit.objects.bulk_create(
                    Commit(
                        repository=self.sources[n],
                        sha=sha(n, branch, at),
                        parents=[sha(n, branch, at - 1)] if at else [],
                        committer="etl",
                        message="nightly load",
                        creation_date=1_790_000_000,
                        metarange_id=make_id(f"m {n} {branch} {at}"),
                        generation=at + 1,
                        version=1,
                        seen_at=self.ago(400 - 100 * at),
                    )
                    for n, branch, at in self.places()
                ),
                strict=True,
            )
        )
        Candidate.objects.bulk_create(
            Candidate(branch=rows[n, branch], position=at, commit=commit, seen_at=commit.seen_at)
            for (n, branch, at), commit in self.commits.items()
        )
        MirrorCommit.objects.bulk_create(
            MirrorCommit(
                mirror=self.mirrors[n],
                commit=commit,
                record="accepted",
                data="complete" if at < 2 else "waiting" if n % 100 == 1 else "unknown",
                history=True,
                waits_for=[make_id(f"range {n} {branch}")] if at == 2 and n % 100 == 1 else [],
                promoted_at=self.ago(180) if at == 1 else None,
            )
            for (n, branch, at), commit in self.commits.items()
        )

    def store_work(self) -> None:
        from jobs.models import Duty
        from mirrors.models import MirrorDuty, Promotion, Run

        kinds = [*MirrorDuty]
        Duty.objects.bulk_create(
            Duty(
                kind=kind,
                subject=self.sources[n].pk if kind == MirrorDuty.SENSE else self.mirrors[n].pk,
                queue=f"{REGIONS[n % len(REGIONS)]}{'-spark' if kind == MirrorDuty.VALIDATE else ''}",
                due_at=self.now + timedelta(seconds=n % 60),
                attempt=100,
                started_at=self.ago(n % 60 + 1),
                ended_at=self.ago(n % 60),
                succeeded_at=self.ago(n % 60 + 1),
                failures=3 if n % 100 == 7 and kind == MirrorDuty.COPY_RECORDS else 0,
                outcome="nothing to do",
            )
            for n in range(self.number)
            for kind in kinds
        )
        Promotion.objects.bulk_create(
            Promotion(
                mirror=mirror,
                branch=f"branch-{branch:02}",
                from_commit=make_id("from"),
                to_commit=make_id("to"),
                why="newest-promotable",
                at=self.ago(180 + 100 * branch + n % 100),
            )
            for n, mirror in enumerate(self.mirrors)
            for branch in range(10)
        )
        Run.objects.bulk_create(
            Run(mirror=mirror, job="check", started_at=self.ago(300), ended_at=self.ago(290), outcome="done")
            for mirror in self.mirrors
        )

    def look_again(self) -> None:
        """Making the rows takes a while, after which nobody would know any more how the mirrors are."""
        from django.db.models.functions import Now

        from mirrors.models import Mirror, Repository

        Repository.objects.update(looked_at=Now())
        Mirror.objects.update(destination_looked_at=Now())

    def store_blockers(self) -> None:
        from mirrors.models import Blocker

        Blocker.objects.bulk_create(
            Blocker(
                mirror=self.mirrors[n],
                kind="object",
                holder_id=make_id(f"range {n} {branch}"),
                key=make_id(f"object {n} {branch} {part}"),
                address=f"data/{part}",
                path=f"orders/part-{part}.parquet",
                reason="missing",
                first_seen=self.ago(190),
                look_at=self.now + timedelta(seconds=30),
            )
            for n in range(1, self.number, 100)
            for branch in range(min(3, self.branches))
            for part in range(20)
        )


def sign_in() -> Any:
    """A client of somebody who may do everything."""
    from django.test import Client

    from rbac import services
    from rbac.models import Group
    from rbac.services import builtin

    builtin.install()
    user = services.user_create(actor="system:bench", username="bench", password="correct horse battery staple")
    services.group_add(actor="system:bench", group=Group.objects.get(name="Admins"), user=user)
    client = Client()
    client.force_login(user)
    return client


def measure(client: Any, path: str, requests: int) -> str:
    """A line: 95th percentiles in milliseconds, queries, and the bytes of a poll as sent and unpacked."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    took = []
    for _ in range(requests):
        time.sleep(PAUSE_SECONDS)
        took.append(_timed(client, path))
    with CaptureQueriesContext(connection) as captured:
        client.get(path)
    queries = len(captured)
    kept = " ".join(re.findall(r'data-kept="(\w+)"', client.get(path).content.decode()))
    poll = {**POLL, "Kept": kept}
    plain = len(client.get(path, headers=poll).content)
    sent = len(client.get(path, headers={**poll, "Accept-Encoding": "gzip"}).content)
    clock, processor = (_p95([one[n] for one in took]) for n in (0, 1))
    word = "" if clock <= GOAL_SECONDS and sent <= GOAL_BYTES else "  MISSED"
    return (
        f"p95 {clock * 1000:5.0f} ms on the clock, {processor * 1000:4.0f} ms of the processor {queries:4} queries "
        f"{sent:7,} bytes a poll ({plain:,} unpacked){word}"
    )


def _p95(figures: Sequence[float]) -> float:
    return sorted(figures)[-(-len(figures) * 95 // 100) - 1]


def _timed(client: Any, path: str) -> tuple[float, float]:
    """Seconds on the clock, and of the processor."""
    started, used = time.perf_counter(), time.process_time()
    answer = client.get(path)
    took = time.perf_counter() - started, time.process_time() - used
    if answer.status_code != 200:
        raise SystemExit(f"{path} answered {answer.status_code}")
    return took


def _profile(client: Any, path: str) -> None:
    client.get(path)
    with cProfile.Profile() as profile:
        client.get(path)
    pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirrors", type=int, default=1000)
    parser.add_argument("--branches", type=int, default=50)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--profile", choices=PAGES, help="say where the time of this page goes")
    given = parser.parse_args(arguments)
    with fresh_database():
        fleet = Fleet(given.mirrors, given.branches)
        fleet.store()
        fleet.look_again()
        client = sign_in()
        clock, processor = _timed(client, "/")
        print(f"{given.mirrors} mirrors of {given.branches} branches, load {os.getloadavg()[0]:.1f}")
        print(f"the first page of a process: {clock * 1000:.0f} ms, {processor * 1000:.0f} ms of the processor")
        if given.profile:
            _profile(client, PAGES[given.profile])
            return
        for name, path in PAGES.items():
            print(f"{name:15} {measure(client, path, given.requests)}", flush=True)
        clock, processor = min(_timed(client, METRICS) for _ in range(3))
        told = f"{clock * 1000:5.0f} ms on the clock, {processor * 1000:4.0f} ms of the processor"
        print(f"{'metrics':15} best {told}")


if __name__ == "__main__":
    main()
