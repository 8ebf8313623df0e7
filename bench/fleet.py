"""Rows of many mirrors on real tables, as the duties leave them: for measurements of pages.

Of the mirrors one in twenty is behind with three branches, and one in a hundred is blocked. The last hour of each is
measured; one has very many measures, and there are as many closed alerts and audit events.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

REGIONS = ("eu-west-1", "ap-south-1", "us-west-2", "sa-east-1")


def make_id(text: str) -> str:
    """Sixty-four hex digits that always belong to the same text."""
    return sha256(text.encode()).hexdigest()


class Fleet:
    """Rows of many mirrors, a source each, some hundreds of thousands of them at once."""

    def __init__(self, mirrors: int, branches: int, rows: int) -> None:
        self.number, self.branches, self.rows = mirrors, branches, rows
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
            self.store_measures()
            self.store_records()

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

    def store_measures(self) -> None:
        """An hour in steps of five minutes for each mirror; for the one whose charts are asked for, very much more."""
        from mirrors.models import Measure
        from mirrors.transitions.measures import LONG, SHORT, began

        hours = self.rows // 4
        for n, mirror in enumerate(self.mirrors):
            steps = [(SHORT, at) for at in range(self.rows - hours if n == 1 else 13)]
            steps += [(LONG, at) for at in range(hours if n == 1 else 0)]
            Measure.objects.bulk_create(
                _measure(mirror, minutes, began(self.now, minutes) - at * timedelta(minutes=minutes), at)
                for minutes, at in steps
            )

    def store_records(self) -> None:
        """Alerts that have closed, a few that are open, and what people did."""
        from audit.models import AuditEvent
        from notifications.models import Alert

        Alert.objects.bulk_create(
            Alert(
                kind="mirror-blocked",
                subject=f"mirror/{self.mirrors[n % self.number].pk}",
                severity="error",
                name=self.mirrors[n % self.number].name,
                region=self.mirrors[n % self.number].region,
                sentence="branch-00 waits for 20 objects",
                remedy="Open its backlog: it names what has not arrived, and how to copy it.",
                link=f"/mirrors/{self.mirrors[n % self.number].name}/",
                mirror=self.mirrors[n % self.number].pk,
                since=self.ago(60 * n + 300),
                seen_at=self.ago(60 * n),
                opened_at=self.ago(60 * n + 240),
                closed_at=self.ago(60 * n) if n >= min(20, self.number) else None,
            )
            for n in range(self.rows)
        )
        AuditEvent.objects.bulk_create(
            AuditEvent(
                actor=f"user-{n % 50}",
                action="fs:OperateMirror",
                arn=f"arn:lakefs:fs:::repository/source-{n % self.number:04}",
                verb="sync",
                after={"sync": self.mirrors[n % self.number].name},
                at=self.ago(30 * (self.rows - n)),
            )
            for n in range(self.rows)
        )


def _measure(mirror: Any, minutes: int, at: datetime, number: int) -> Any:
    from mirrors.models import Measure

    end = at + timedelta(minutes=minutes)
    busy = number % 12 < 8
    return Measure(
        mirror=mirror,
        minutes=minutes,
        began_at=at,
        ends_at=end,
        read_at=end - timedelta(seconds=20),
        settled=number > 1,
        lag_seconds=busy * (4.0 + number * 7 % 900),
        backlog=busy * (number % 40),
        backlog_last=busy * (number % 9),
        missing=busy * (number % 300),
        promoted=busy * (2 + number % 4),
        checks=busy * (3 + number % 6),
        commits_seen=busy * (2 + number % 3),
        commits_mirrored=busy * (2 + number % 4),
        objects_new=busy * (number * 131 % 5000),
        bytes_new=busy * (number * 131 % 5000) * 4_500,
        objects_checked=busy * (number * 997 % 50_000),
        bytes_checked=busy * (number * 997 % 50_000) * 90_000,
    )
