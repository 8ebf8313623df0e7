"""Lag, backlog and throughput over time: how they are written down, whoever is killed and whatever comes twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random
from unittest import mock

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from core.errors import Fenced
from core.mirroring.promotion import Why
from db import clock
from jobs.lease import Lease
from jobs.models import Duty
from mirrors.models import Blocker, Measure, Mirror, Promotion, Run
from mirrors.status.facts import Pending
from mirrors.transitions import measures
from mirrors.transitions.measures import began, note_checked, note_measures
from tests.mirrors.factories import Line, at_mirror, make_id, make_mirror, make_repository
from tests.mirrors.harness import Deployment

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Time:
    """A clock that stands until it is put forward."""

    def __init__(self) -> None:
        self.now = NOON + timedelta(minutes=1)

    def pass_(self, **length: float) -> datetime:
        self.now += timedelta(**length)
        return self.now


@pytest.fixture
def time() -> Iterator[Time]:
    made = Time()
    with mock.patch("db.clock.now", side_effect=lambda: made.now):
        yield made


@pytest.fixture
def mirror(db: None) -> Mirror:
    return make_mirror("lake-eu", make_repository("lake", now=NOON), now=NOON)


@pytest.fixture
def lease() -> Lease:
    return mock.Mock(spec=Lease)


def waiting(seconds: float, number: int = 1) -> list[Pending]:
    """A branch whose oldest pending commit was seen so long ago."""
    return [Pending(make_id("x"), 3, clock.now() - timedelta(seconds=seconds), number, False)]


def note(mirror: Mirror, lease: Lease, pending: list[Pending], *, looked_at: bool = True) -> None:
    mirror.source.looked_at = clock.now() if looked_at else None
    note_measures(mirror, pending, lease)


def hour(mirror: Mirror, at: datetime = NOON) -> Measure:
    return mirror.measures.get(minutes=60, began_at=began(at, 60))


def test_commits_that_came_and_went_are_counted_by_their_own_rows(mirror: Mirror, lease: Lease, time: Time) -> None:
    line = Line(mirror.source, "main", NOON)
    for number, ago in enumerate((4000, 1, 0)):
        at_mirror(mirror, line.commit(f"c{number}", ago=ago), "complete", now=NOON)
    time.pass_(seconds=60)
    mirror.commits.filter(commit=line.commits[1]).update(superseded_at=clock.now())
    mirror.commits.filter(commit=line.commits[2]).update(promoted_at=clock.now())
    for _ in range(2):
        note(mirror, lease, [])
    assert (hour(mirror).commits_seen, hour(mirror).commits_mirrored) == (1, 2)


# --- what is read -----------------------------------------------------------------------------------------------------


def test_an_hour_has_its_worst_lag_its_most_and_its_last_backlog(mirror: Mirror, lease: Lease, time: Time) -> None:
    for seconds, number in ((5, 1), (240, 7), (0, 2)):
        note(mirror, lease, waiting(seconds, number))
        time.pass_(seconds=20)
    row = hour(mirror)
    assert (row.lag_seconds, row.backlog, row.backlog_last, row.read_at) == (240, 7, 2, NOON + timedelta(seconds=100))


def test_nothing_waits_is_zero_and_not_looked_at_is_unknown(mirror: Mirror, lease: Lease, time: Time) -> None:
    note(mirror, lease, [], looked_at=False)
    row = hour(mirror)
    assert (row.lag_seconds, row.backlog, row.backlog_last) == (None, None, None)
    assert (row.missing, row.promoted, row.checks) == (0, 0, 0)
    note(mirror, lease, [])
    assert (hour(mirror).lag_seconds, hour(mirror).backlog, hour(mirror).backlog_last) == (0, 0, 0)


def test_a_source_that_is_not_looked_at_any_more_is_at_least_so_far_ahead(
    mirror: Mirror, lease: Lease, time: Time
) -> None:
    note(mirror, lease, waiting(60, 3), looked_at=False)
    assert (hour(mirror).lag_seconds, hour(mirror).backlog) == (60, 3)


def test_five_minutes_and_an_hour_are_written_each_by_itself(mirror: Mirror, lease: Lease, time: Time) -> None:
    note(mirror, lease, waiting(100))
    time.pass_(minutes=30)
    note(mirror, lease, waiting(10))
    told = mirror.measures.values_list("minutes", "began_at", "lag_seconds").order_by("minutes", "began_at")
    assert list(told) == [(5, NOON, 100), (5, NOON + timedelta(minutes=30), 10), (60, NOON, 100)]


def test_a_reading_that_comes_late_is_not_the_last(mirror: Mirror, lease: Lease, time: Time) -> None:
    note(mirror, lease, waiting(1, 2))
    time.pass_(seconds=-30)
    note(mirror, lease, waiting(9, 8))
    row = hour(mirror)
    assert (row.lag_seconds, row.backlog, row.backlog_last, row.read_at) == (9, 8, 2, NOON + timedelta(minutes=1))


def test_what_is_missing_is_counted_twice_a_minute_at_most(mirror: Mirror, lease: Lease, time: Time) -> None:
    note(mirror, lease, [])
    known = {"kind": "object", "holder_id": "r", "reason": "missing", "first_seen": NOON, "look_at": NOON}
    for number in range(3):
        Blocker.objects.create(mirror=mirror, key=str(number), address=str(number), **known)
    time.pass_(seconds=10)
    note(mirror, lease, [])
    assert hour(mirror).missing == 0
    time.pass_(seconds=31)
    note(mirror, lease, [])
    assert hour(mirror).missing == 3


def test_nor_less_often_where_readings_come_every_second(mirror: Mirror, lease: Lease, time: Time) -> None:
    note(mirror, lease, [])
    known = {"kind": "object", "holder_id": "r", "reason": "missing", "first_seen": NOON, "look_at": NOON}
    Blocker.objects.create(mirror=mirror, key="k", address="k", **known)
    for _ in range(31):
        time.pass_(seconds=1)
        note(mirror, lease, [])
    assert hour(mirror).missing == 1


# --- what is counted --------------------------------------------------------------------------------------------------


def test_promotions_are_counted_at_once_when_something_moved_and_else_every_ten_seconds(
    mirror: Mirror, lease: Lease, time: Time
) -> None:
    note(mirror, lease, [])
    time.pass_(seconds=1)
    moved(mirror, "a", clock.now())
    note(mirror, lease, [])
    assert hour(mirror).promoted == 0
    note_measures(mirror, [], lease, moved=True)
    assert hour(mirror).promoted == 1
    moved(mirror, "b", clock.now())
    for _ in range(10):
        time.pass_(seconds=1)
        note(mirror, lease, [])
    assert hour(mirror).promoted == 2


def moved(mirror: Mirror, commit: str, at: datetime, why: str = Why.ADVANCED, **more: bool) -> None:
    Promotion.objects.create(mirror=mirror, branch="main", to_commit=commit, why=why, at=at, **more)


def test_commits_count_once_and_only_those_that_became_mirrored(mirror: Mirror, lease: Lease, time: Time) -> None:
    for commit, why in (("a", Why.FIRST), ("a", Why.ADVANCED), ("b", Why.ADVANCED), ("c", Why.FOREIGN), ("", Why.GONE)):
        moved(mirror, commit, time.now, why)
    moved(mirror, "d", time.now, is_tag=True)
    moved(mirror, "e", NOON - timedelta(seconds=1))
    Run.objects.create(mirror=mirror, job="check", started_at=time.now)
    note(mirror, lease, [])
    assert (hour(mirror).promoted, hour(mirror).checks) == (2, 1)


def test_what_happened_after_the_last_reading_is_counted_by_the_next_one(
    mirror: Mirror, lease: Lease, time: Time
) -> None:
    note(mirror, lease, waiting(5))
    moved(mirror, "a", time.pass_(minutes=58))
    time.pass_(hours=7)
    note(mirror, lease, waiting(800))
    row = hour(mirror)
    assert (row.promoted, row.lag_seconds, row.settled) == (1, 5, True)
    assert hour(mirror, time.now).promoted == 0


def test_what_is_settled_is_left_alone(mirror: Mirror, lease: Lease, time: Time) -> None:
    note(mirror, lease, [])
    moved(mirror, "a", time.now)
    time.pass_(hours=2)
    note(mirror, lease, [])
    Promotion.objects.all().delete()
    time.pass_(minutes=1)
    note(mirror, lease, [])
    assert hour(mirror).promoted == 1


class Killed(Exception):
    """The worker is no more."""


@pytest.mark.parametrize("seed", range(4))
def test_whoever_is_killed_and_whatever_comes_twice_the_sums_are_right(
    mirror: Mirror, lease: Lease, time: Time, seed: int
) -> None:
    random = Random(seed)
    promoted: Counter[datetime] = Counter()
    runs: Counter[datetime] = Counter()
    checked: Counter[datetime] = Counter()
    worst: dict[datetime, float] = {}

    def work() -> None:
        """Something that is done as a whole, or not at all."""
        at, what = began(time.now, 60), random.randrange(4)
        dies = random.random() < 0.3
        with suppress(Killed), transaction.atomic():
            if what == 0:
                moved(mirror, make_id(str(random.random())), time.now)
            elif what == 1:
                Run.objects.create(mirror=mirror, job="check", started_at=time.now)
            else:
                note_checked(mirror, 10, 1000, new_objects=3, new_size=300)
            if dies:
                raise Killed
        if not dies:
            [promoted, runs, checked, checked][what][at] += 10 if what > 1 else 1

    def read() -> None:
        seconds = random.randrange(1000)
        place = random.choice(["_most", "_counted", "_is_over", ""])
        with suppress(Killed), transaction.atomic():
            if place:
                with mock.patch.object(measures, place, side_effect=Killed):
                    note(mirror, lease, waiting(seconds))
            note(mirror, lease, waiting(seconds))
            if random.random() < 0.3:
                raise Killed
            at = began(time.now, 60)
            worst[at] = max(worst.get(at, 0), seconds)
        if random.random() < 0.3:
            read()

    for _ in range(60):
        random.choice([work, work, read])()
        time.pass_(seconds=random.choice([0, 1, 30, 400, -20]))
    time.pass_(minutes=10)
    note(mirror, lease, [])
    for row in mirror.measures.filter(minutes=60):
        at = row.began_at
        assert (row.promoted, row.checks, row.objects_checked) == (promoted[at], runs[at], checked[at])
        assert row.bytes_checked == 100 * checked[at]
        assert row.lag_seconds == (worst.get(at) if at != began(time.now, 60) else worst.get(at, 0))
    short = mirror.measures.filter(minutes=5)
    assert sum(short.values_list("objects_checked", flat=True)) == sum(checked.values())
    assert set(checked) <= set(mirror.measures.filter(minutes=60).values_list("began_at", flat=True))


# --- rows -------------------------------------------------------------------------------------------------------------


def test_old_rows_go_in_small_steps(mirror: Mirror, lease: Lease, time: Time) -> None:
    old = [
        Measure(mirror=mirror, minutes=minutes, began_at=at, ends_at=at + timedelta(minutes=minutes), settled=True)
        for minutes, days in ((5, 2.1), (60, 2.1), (60, 91.1))
        for at in (NOON - timedelta(days=days) - n * timedelta(minutes=minutes) for n in range(70))
    ]
    Measure.objects.bulk_create(old)
    note(mirror, lease, [])
    assert mirror.measures.count() == 210 - 100 + 2
    time.pass_(minutes=5)
    note(mirror, lease, [])
    assert list(mirror.measures.filter(began_at__lt=NOON).values_list("minutes", flat=True)) == [60] * 70


def test_a_mirror_that_is_being_deleted_and_a_lost_lease_write_nothing(
    mirror: Mirror, lease: Lease, time: Time
) -> None:
    mirror.state = Mirror.State.DELETING
    note(mirror, lease, [])
    mirror.state = Mirror.State.ACTIVE
    lease.lock.side_effect = Fenced("lost")  # type: ignore[attr-defined]
    with pytest.raises(Fenced):
        note(mirror, lease, [])
    assert not Measure.objects.exists()


def test_a_round_takes_few_queries(mirror: Mirror, lease: Lease, time: Time) -> None:
    note(mirror, lease, [])
    time.pass_(seconds=10)
    with CaptureQueriesContext(connection) as asked:
        note(mirror, lease, waiting(4))
    statements = [query["sql"] for query in asked if "SAVEPOINT" not in query["sql"]]
    assert [sql.split()[0] for sql in statements] == ["SELECT", "SELECT", "UPDATE"]


# --- by the duties ----------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_commit_s_way_is_measured(lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"123", "b": b"4567"})
    lm.arrive()
    lm.work()
    mirror = Mirror.objects.get()
    row = mirror.measures.filter(minutes=60).latest("began_at")
    assert row.promoted == 1 and row.checks == Run.objects.count() > 0
    assert (row.objects_checked, row.bytes_checked) == (2, 7)
    assert row.lag_seconds > 0 and row.backlog > 0 and row.backlog_last == 0
    lm.run(Duty.objects.get(kind="promote").pk)
    row.refresh_from_db()
    assert (row.promoted, row.objects_checked) == (1, 2)
