"""Rows as the duties would have left them, so that pages and readings can be looked at without an engine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from django.db import transaction

from core.installations.settings import Secrets, Wish
from core.mirroring.doubt import pack
from db import clock
from graveler.metarange import RangeRef
from installations import refresh
from installations.models import Installation, InstallationTest
from jobs.models import Duty
from mirrors.models import (
    Blocker,
    Candidate,
    Commit,
    Coverage,
    Measure,
    MetarangeCoverage,
    Mirror,
    MirrorBranch,
    MirrorCommit,
    Repository,
    Run,
    SourceBranch,
)
from mirrors.queries.metarange_cache import Found, remembered
from mirrors.transitions.blockers import address_hash
from tests.mirrors.copied import company

_numbers = count(1)


def make_id(text: str) -> str:
    """A hex id of 64 characters that always belongs to the same text."""
    return hashlib.sha256(text.encode()).hexdigest()


def make_repository(name: str = "lake", *, region: str = "us-east-1", now: datetime, **more: Any) -> Repository:
    """A source repository that was looked at three seconds ago."""
    defaults = {
        "storage_namespace": f"s3://lake-{region}/{name}",
        "creation_date": int(now.timestamp()) - 86_400,
        "default_branch": "main",
        "looked_at": now - timedelta(seconds=3),
    }
    return Repository.objects.create(region=region, name=name, **(defaults | more))


def make_mirror(name: str, source: Repository, *, region: str = "eu-west-1", now: datetime, **more: Any) -> Mirror:
    """An active mirror, created yesterday and validated two minutes ago."""
    created_at = more.pop("created_at", now - timedelta(days=1))
    defaults = {
        "storage_namespace": f"s3://lake-{region}/{name}",
        "state": Mirror.State.ACTIVE,
        "pinned_creation_date": int(now.timestamp()) - 80_000,
        "last_validated_at": now - timedelta(minutes=2),
        "destination_looked_at": now - timedelta(seconds=5),
    }
    mirror = Mirror.objects.create(name=name, source=source, region=region, **(defaults | more))
    mirror.created_at = created_at
    mirror.save(update_fields=["created_at"])
    return mirror


@dataclass
class Line:
    """A branch that grows: commits at the source, and where a mirror is on it."""

    repository: Repository
    name: str
    now: datetime
    branch: SourceBranch = field(init=False)
    commits: list[Commit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.branch = SourceBranch.objects.create(
            repository=self.repository, name=self.name, head="", position=-1, changed_at=self.now
        )

    def commit(
        self,
        message: str,
        *,
        ago: float,
        committer: str = "etl",
        parents: list[Commit] | None = None,
        forward: bool = True,
    ) -> Commit:
        """A new head of the source branch, first seen `ago` seconds ago."""
        before = parents if parents is not None else self.commits[-1:]
        commit = make_commit(
            self.repository, message, parents=before, at=self.now - timedelta(seconds=ago), by=committer
        )
        return self.point_to(commit, ago=ago, forward=forward)

    def point_to(self, commit: Commit, *, ago: float, forward: bool = True) -> Commit:
        """The source branch moves to a commit that exists."""
        seen = self.now - timedelta(seconds=ago)
        position = self.branch.position + 1
        Candidate.objects.create(
            branch=self.branch, position=position, commit=commit, seen_at=seen, fast_forward=forward
        )
        self.branch.head, self.branch.position, self.branch.changed_at = commit.sha, position, seen
        self.branch.save()
        self.commits.append(commit)
        return commit

    def reached(self, mirror: Mirror, commit: Commit, *, ago: float = 60) -> MirrorBranch:
        """The mirror's branch was moved to one of the commits; all before it were there and were passed."""
        at = self.now - timedelta(seconds=ago)
        place = self.commits.index(commit)
        for earlier in self.commits[:place]:
            at_mirror(mirror, earlier, "complete", now=self.now, superseded_at=at)
        at_mirror(mirror, commit, "complete", now=self.now, promoted_at=at)
        return MirrorBranch.objects.create(
            mirror=mirror, name=self.name, head=commit.sha, position=place, advanced_at=at, proven=True
        )


def make_commit(
    repository: Repository, message: str, *, parents: list[Commit], at: datetime, by: str = "etl"
) -> Commit:
    """A commit record as the sensor stores it."""
    number = next(_numbers)
    return Commit.objects.create(
        repository=repository,
        sha=make_id(f"{repository.name} {message} {number}"),
        parents=[parent.sha for parent in parents],
        committer=by,
        message=message,
        creation_date=int(at.timestamp()) - 1,
        metarange_id=make_id(f"metarange {number}"),
        generation=max((parent.generation for parent in parents), default=0) + 1,
        version=1,
        seen_at=at,
    )


def at_mirror(mirror: Mirror, commit: Commit, stage: str, *, now: datetime, **more: Any) -> MirrorCommit:
    """How far a commit has come at a mirror: copying, checking, waiting or complete."""
    seen = commit.seen_at
    times = {"recorded_at": seen + timedelta(seconds=1.2), "metadata_at": seen + timedelta(seconds=3.8)}
    fields: dict[str, Any] = {
        "copying": {},
        "checking": {"record": "accepted", "recorded_at": times["recorded_at"]},
        "waiting": {"record": "accepted", "data": "waiting", **times},
        "complete": {
            "record": "accepted",
            "data": "complete",
            "history": True,
            "validated_at": seen + timedelta(seconds=5.1),
            **times,
        },
    }[stage]
    values = fields | more
    if values.get("data") in ("waiting", "complete"):
        name_range(mirror, commit, values["data"], now=now)
    if not MirrorCommit.objects.filter(mirror=mirror, commit=commit).update(**values):
        return MirrorCommit.objects.create(mirror=mirror, commit=commit, **values)
    return MirrorCommit.objects.get(mirror=mirror, commit=commit)


def range_of(commit: Commit) -> str:
    """The only range that a commit's metarange names."""
    return make_id(f"range of {commit.sha}")


def name_range(mirror: Mirror, commit: Commit, state: str, *, now: datetime) -> None:
    """The metarange of a commit is there, and what it names was checked: the range is complete, or waits."""
    ref = RangeRef(range_of(commit), b"a", b"z", 1, 1)
    remembered().put(commit.metarange_id, Found((ref,)))
    MetarangeCoverage.objects.get_or_create(
        mirror=mirror,
        metarange_id=commit.metarange_id,
        defaults={"state": "complete", "ranges": 1, "checked_at": now, "verify_at": now + timedelta(days=6)},
    )
    proven = {"state": state, "depth": mirror.depth, "checked_at": now, "min_key": ref.min_key, "max_key": ref.max_key}
    proven |= {"looked": pack([]), "verify_at": now + timedelta(days=6) if state == "complete" else None}
    Coverage.objects.update_or_create(mirror=mirror, range_id=ref.id, defaults=proven)


def block(
    mirror: Mirror,
    commit: Commit,
    path: str,
    *,
    now: datetime,
    ago: float,
    reason: str = "missing",
    kind: str = "object",
    size: int | None = 20_100_000,
    **more: Any,
) -> Blocker:
    """Something that a commit lacks since `ago` seconds; the commit is noted as waiting for it."""
    holder = range_of(commit)
    row = at_mirror(mirror, commit, "waiting", now=now, waits_for=[holder])
    row.history = not MirrorCommit.objects.filter(
        mirror=mirror, commit__sha__in=commit.parents, data="waiting"
    ).exists()
    row.save()
    digest = make_id(path)
    address = f"data/{digest[:20]}/{digest[20:40]}" if kind == "object" else f"_lakefs/{digest}"
    defaults: dict[str, Any] = {
        "address": address,
        "address_hash": address_hash(address),
        "path": path if kind == "object" else "",
        "size": size if kind == "object" else None,
        "reason": reason,
        "first_seen": now - timedelta(seconds=ago),
        "attempts": 9,
        "look_at": now + timedelta(seconds=41),
    }
    return Blocker.objects.create(mirror=mirror, kind=kind, holder_id=holder, key=digest, **(defaults | more))


def fail(kind: str, subject: int, outcome: str, *, now: datetime, failures: int = 3) -> Duty:
    """A duty whose last tries failed."""
    return Duty.objects.create(
        kind=kind, subject=subject, queue="q", due_at=now + timedelta(seconds=8), failures=failures, outcome=outcome
    )


def run_check(mirror: Mirror, *, now: datetime, ranges: int = 31, done: int = 12) -> Run:
    """A Spark job at work, under a lease."""
    Duty.objects.create(
        kind="validate",
        subject=mirror.pk,
        queue="q",
        due_at=now,
        holder="worker",
        until=now + timedelta(seconds=50),
    )
    return Run.objects.create(mirror=mirror, job="check", started_at=now, ranges=ranges, ranges_done=done)


# --- a small company, with one of everything ------------------------------------------------------------------------


def make_company(now: datetime | None = None) -> dict[str, Mirror]:
    """Mirrors in each state, by name."""
    now = now or datetime.now(UTC)
    with transaction.atomic():
        mirrors = company(now, _make_company)
        for mirror in mirrors.values():  # rows that are made again get today's
            mirror.created_at = now if mirror.state == Mirror.State.CREATING else now - timedelta(days=1)
            mirror.save(update_fields=["created_at"])
    return mirrors


def _make_company(now: datetime) -> dict[str, Mirror]:
    makers = (_analytics, _models, _billing, _archive, _fresh, _orders, _lab, _events)
    return {mirror.name: mirror for mirror in (make(now) for make in makers)}


def _grow(line: Line, messages: list[str], *, first_ago: float, step: float, by: str = "etl") -> list[Commit]:
    return [line.commit(text, ago=first_ago - step * n, committer=by) for n, text in enumerate(messages)]


def _analytics(now: datetime) -> Mirror:
    """Blocked, validating, rewound, long behind and up to date, a branch each."""
    source = make_repository("analytics", now=now)
    mirror = make_mirror("analytics-eu", source, now=now)
    _blocked_main(source, mirror, now)
    main = Commit.objects.filter(repository=source, message="orders 2026-11-19").get()
    _features(source, mirror, now)
    _rollback(source, mirror, now)
    _backfill(source, mirror, now, main)
    _experiments(source, mirror, now, main)
    _release(source, now, main)
    return mirror


def _blocked_main(source: Repository, mirror: Mirror, now: datetime) -> None:
    main = Line(source, "main", now)
    _grow(main, ["first load", "customers", "orders 2026-11-19"], first_ago=8000, step=900)
    blocked = main.commit("nightly orders load", ago=840)
    later = [main.commit(text, ago=ago) for text, ago in (("fix currency", 610), ("prices", 300), ("returns", 42))]
    main.reached(mirror, main.commits[2], ago=1080)
    for part in (17, 18, 19):
        block(mirror, blocked, f"orders/day=2026-11-20/part-{part:05}.parquet", now=now, ago=836)
    for commit in later:
        at_mirror(mirror, commit, "complete", now=now, history=False, validated_at=None)


def _features(source: Repository, mirror: Mirror, now: datetime) -> None:
    line = Line(source, "features_v2", now)
    _grow(line, ["f1", "f2", "f3", "f4", "f5"], first_ago=5000, step=1000, by="maria")
    line.reached(mirror, line.commits[-1], ago=980)


def _rollback(source: Repository, mirror: Mirror, now: datetime) -> None:
    line = Line(source, "rollback-test", now)
    first, second = _grow(line, ["before", "mistake"], first_ago=4000, step=2000, by="ops")
    line.reached(mirror, second, ago=1900)
    moved = line.commit("without the mistake", ago=38, committer="ops", parents=[first], forward=False)
    at_mirror(mirror, moved, "checking", now=now, history=True)


def _backfill(source: Repository, mirror: Mirror, now: datetime, main: Commit) -> None:
    line = Line(source, "backfill/2024-q4", now)
    start = line.commit("start of the backfill", ago=700, parents=[main], committer="backfill")
    line.reached(mirror, start, ago=650)
    for number in range(1, 13):
        commit = line.commit(f"week {number}", ago=130 - 10 * number, committer="backfill")
        at_mirror(mirror, commit, "checking" if number < 9 else "copying", now=now)


def _experiments(source: Repository, mirror: Mirror, now: datetime, main: Commit) -> None:
    line = Line(source, "experiments", now)
    start = line.commit("model 41", ago=500, parents=[main], committer="maria")
    line.reached(mirror, start, ago=480)
    at_mirror(mirror, line.commit("model 42", ago=6, committer="maria"), "checking", now=now, history=True)
    run_check(mirror, now=now)


def _release(source: Repository, now: datetime, main: Commit) -> None:
    """Just created at the source: not at the mirror yet."""
    Line(source, "release-12", now).point_to(main, ago=1)


def _up_to_date(name: str, source: Repository, now: datetime, branches: list[str], **more: Any) -> Mirror:
    mirror = make_mirror(name, source, now=now, **more)
    for number, branch in enumerate(branches):
        line = Line(source, branch, now)
        _grow(line, ["one", "two", "three"], first_ago=90_000 + number, step=20_000)
        line.reached(mirror, line.commits[-1], ago=900 + number)
    return mirror


def _models(now: datetime) -> Mirror:
    """Up to date."""
    return _up_to_date("models-eu", make_repository("models", now=now), now, ["main", "candidate", "champion"])


def _billing(now: datetime) -> Mirror:
    """Paused, with commits waiting."""
    source = make_repository("billing", region="eu-west-1", now=now)
    mirror = make_mirror("billing-us", source, region="us-east-1", now=now, paused=True)
    line = Line(source, "main", now)
    _grow(line, ["open", "close", "correct"], first_ago=20_000, step=6000)
    line.reached(mirror, line.commits[0], ago=19_000)
    return mirror


def _archive(now: datetime) -> Mirror:
    """Stopped: somebody made it writable."""
    return _up_to_date(
        "archive-eu",
        make_repository("archive", now=now),
        now,
        ["main"],
        state=Mirror.State.STOPPED,
        reason_code="failed-over",
        reason="the repository archive-eu in eu-west-1 became writable: nothing is changed there",
    )


def _fresh(now: datetime) -> Mirror:
    """New: it was created just now, and its repository is being made."""
    source = make_repository("fresh", now=now, looked_at=None)
    return make_mirror("fresh-eu", source, now=now, created_at=now, state=Mirror.State.CREATING, last_validated_at=None)


def _orders(now: datetime) -> Mirror:
    """One commit on its way, its objects not there yet."""
    source = make_repository("orders", now=now)
    mirror = _up_to_date("orders-eu", source, now, ["main"])
    branch = SourceBranch.objects.get(repository=source, name="main")
    line = _continue(branch, now)
    commit = line.commit("hour 9", ago=4)
    block(
        mirror, commit, "orders/hour=9/part-0.parquet", now=now, ago=2, attempts=2, look_at=now + timedelta(seconds=1)
    )
    return mirror


def _continue(branch: SourceBranch, now: datetime) -> Line:
    line = Line.__new__(Line)
    line.repository, line.name, line.now, line.branch = branch.repository, branch.name, now, branch
    line.commits = [candidate.commit for candidate in branch.candidates.select_related("commit")]
    return line


def _lab(now: datetime) -> Mirror:
    """Somebody wrote to a branch of the mirror."""
    mirror = _up_to_date("lab-eu", make_repository("lab", now=now), now, ["main", "trial"])
    MirrorBranch.objects.filter(mirror=mirror, name="trial").update(uncommitted=True)
    return mirror


def _events(now: datetime) -> Mirror:
    """The source hasn't answered for ten minutes."""
    source = make_repository("events", now=now, looked_at=now - timedelta(minutes=10))
    mirror = _up_to_date("events-eu", source, now, ["main"])
    fail("sense", source.pk, "us-east-1 did not answer within 10 s", now=now)
    return mirror


# --- over time --------------------------------------------------------------------------------------------------------


def make_measures(mirror: Mirror, *, now: datetime, days: int) -> None:
    """Days of measures: quiet nights, a late hour every third day, a gap every fifth."""
    start = now.replace(minute=0, second=0, microsecond=0)
    rows = [
        _measure(mirror, 60, start - timedelta(hours=n), n, now) for n in range(24 * days) if n % 120 not in (30, 31)
    ]
    short = start.replace(minute=now.minute // 5 * 5)
    rows += [
        _measure(mirror, 5, short - timedelta(minutes=5 * n), n, now) for n in range(288) if n % 100 not in (70, 71)
    ]
    Measure.objects.bulk_create(rows)


def _measure(mirror: Mirror, minutes: int, at: datetime, number: int, now: datetime) -> Measure:
    busy, late = 6 <= at.hour < 20, number % 72 == 40
    objects = (at.hour * 997 + number * 131) % 5000 * minutes * busy
    return Measure(
        mirror=mirror,
        minutes=minutes,
        began_at=at,
        ends_at=at + timedelta(minutes=minutes),
        read_at=min(now, at + timedelta(minutes=minutes - 0.3)),
        settled=at + timedelta(minutes=minutes + 2) < now,
        lag_seconds=1320.0 if late else busy * (4.0 + number * 7 % 90),
        backlog=41 if late else busy * (1 + number % 5),
        backlog_last=12 if late else busy * (number % 2),
        missing=380 if late else busy * (number % 3),
        promoted=busy * (2 + number % 4),
        checks=busy * (3 + number % 6),
        commits_seen=busy * (2 + number % 3),
        commits_mirrored=busy * (2 + number % 4),
        objects_new=objects // 20,
        bytes_new=objects * 4_500,
        objects_checked=objects,
        bytes_checked=objects * 90_000,
    )


def make_installation(region: str = "mars-1") -> Installation:
    """One of the database, with a test that found something."""
    row = Installation(changed_at=clock.now())
    row.put(
        Wish(region, f"http://lakefs.{region}", "AKIAMARS", served_by="us-east-1", store_access="chain"), Secrets("s")
    )
    row.save()
    checks = [
        {"id": "lakefs-reachable", "state": "ok", "message": "The lakeFS of mars-1 answers", "fix": ""},
        {
            "id": "store-versioning",
            "state": "failed",
            "message": "Versioning of mars is not enabled",
            "fix": "Enable it",
        },
    ]
    InstallationTest.objects.create(
        region=region, tested_at=clock.now(), reachable=True, lakefs_version="1.84.0", checks=checks
    )
    refresh.read()
    return row
