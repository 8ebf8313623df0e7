"""How late a mirror may be: its own target, when a branch was later than that, and the share of the time it wasn't."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.mirroring.states import State
from db import clock
from jobs.models import Duty
from mirrors.models import Candidate, LagBreach, Measure, Mirror, Promotion
from mirrors.status.mirror import mirror_status
from mirrors.transitions.rpo_breaches import Kept, targets_kept
from rbac.models import User
from tests.api import Api
from tests.mirrors.factories import Line, make_mirror, make_repository
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)
LAG = "/service/replication/v1/repositories/lake/mirrors/lake-eu/lag"


@pytest.fixture
def api(owner: User) -> Api:
    return Api(owner)


def promote(lm: Deployment) -> None:
    lm.run(Duty.objects.get(kind="promote").pk)


def promoted(lm: Deployment) -> str:
    commit = lm.lake.commit()
    lm.arrive()
    lm.work(1)
    assert lm.head() == commit
    return commit


def held_back(lm: Deployment, *, seconds: float) -> str:
    """A commit that waits for an object, and was first seen some seconds ago; the mirror is there, and watches, for
    longer: lag counts from its creation at the earliest."""
    commit = lm.lake.commit(files={"late": b"object"})
    lm.arrive(lm.lake.address_of(commit, "late"))
    lm.work(1)
    seen = clock.now() - timedelta(seconds=seconds)
    Candidate.objects.filter(commit__sha=commit).update(seen_at=seen)
    Candidate.objects.exclude(commit__sha=commit).update(seen_at=seen - timedelta(days=3))
    Mirror.objects.update(created_at=seen - timedelta(days=4), watched_since=seen - timedelta(days=2))
    promote(lm)
    return commit


# --- noting -----------------------------------------------------------------------------------------------------------


def test_a_breach_begins_when_the_target_was_passed_and_ends_with_the_promotion(lm: Deployment) -> None:
    promoted(lm)
    commit = held_back(lm, seconds=1000)
    [breach] = LagBreach.objects.all()
    seen = Candidate.objects.get(commit__sha=commit).seen_at
    assert (breach.branch, breach.began_at, breach.ended_at) == ("main", seen + timedelta(minutes=5), None)
    lm.arrive()
    lm.work(1)
    breach.refresh_from_db()
    at = Promotion.objects.first().at
    assert breach.ended_at is not None
    assert timedelta() <= breach.ended_at - at < timedelta(seconds=5)


def test_a_branch_within_its_target_and_an_idle_one_are_no_breach(lm: Deployment) -> None:
    promoted(lm)
    Candidate.objects.update(seen_at=clock.now() - timedelta(days=1))
    promote(lm)
    held_back(lm, seconds=200)
    assert not LagBreach.objects.exists()


def test_the_mirror_s_own_target_counts(lm: Deployment) -> None:
    promoted(lm)
    held_back(lm, seconds=200)
    Mirror.objects.update(rpo_seconds=60)
    promote(lm)
    assert LagBreach.objects.filter(ended_at=None).count() == 1
    Mirror.objects.update(rpo_seconds=3600)
    promote(lm)
    assert LagBreach.objects.filter(ended_at=None).count() == 0


def test_a_round_that_finds_nothing_new_writes_nothing(lm: Deployment) -> None:
    promoted(lm)
    held_back(lm, seconds=1000)
    with CaptureQueriesContext(connection) as asked:
        promote(lm)
    writes = [query["sql"] for query in asked if not query["sql"].startswith("SELECT")]
    assert not [sql for sql in writes if "lagbreach" in sql or "watched_since" in sql]


def test_a_paused_mirror_is_late_all_the_same(lm: Deployment) -> None:
    promoted(lm)
    Mirror.objects.update(paused=True)
    held_back(lm, seconds=1000)
    assert LagBreach.objects.get().ended_at is None


def test_a_first_copy_is_no_breach_and_not_measured(lm: Deployment, api: Api) -> None:
    commit = lm.lake.commit(files={"late": b"object"})
    lm.arrive(lm.lake.address_of(commit, "late"))
    lm.work(1)
    Candidate.objects.update(seen_at=clock.now() - timedelta(hours=1))
    promote(lm)
    assert not LagBreach.objects.exists()
    assert Mirror.objects.get().watched_since is None
    status, told = api.call("GET", LAG)
    assert (status, told["watched_since"], told["results"][0]["attainment_30d"]) == (200, None, None)
    lm.arrive()
    lm.work(1)
    assert Mirror.objects.get().watched_since is not None


def test_a_branch_that_is_gone_at_the_source_is_late_no_more(lm: Deployment) -> None:
    promoted(lm)
    held_back(lm, seconds=1000)
    lm.lake.repository.branches["main"] = lm.head()
    lm.work(1)
    assert LagBreach.objects.get().ended_at is not None


def test_breaches_are_kept_for_35_days(lm: Deployment) -> None:
    promoted(lm)
    mirror, now = Mirror.objects.get(), clock.now()
    for days in (36, 34):
        ended = now - timedelta(days=days)
        LagBreach.objects.create(mirror=mirror, branch="main", began_at=ended - timedelta(hours=1), ended_at=ended)
    held_back(lm, seconds=1000)
    assert LagBreach.objects.count() == 2
    assert not LagBreach.objects.filter(ended_at__lt=now - timedelta(days=35)).exists()


# --- how well the target was kept -------------------------------------------------------------------------------------


def kept(mirror: Mirror, branch: str = "main") -> Kept:
    return targets_kept(mirror, [branch], NOW)[branch]


def breach(mirror: Mirror, *, began: timedelta, ended: timedelta | None, branch: str = "main") -> None:
    LagBreach.objects.create(
        mirror=mirror, branch=branch, began_at=NOW - began, ended_at=None if ended is None else NOW - ended
    )


@pytest.fixture
def mirror() -> Mirror:
    """Watched for 40 days, with a branch that was first seen as long ago."""
    watched = NOW - timedelta(days=40)
    made = make_mirror("lake-eu", make_repository("lake", now=NOW), now=NOW, watched_since=watched)
    Line(made.source, "main", NOW).commit("A", ago=40 * 86_400)
    return made


def test_the_share_of_thirty_days_that_was_within_the_target(mirror: Mirror) -> None:
    assert kept(mirror) == Kept(1.0, NOW - timedelta(days=30), [])
    breach(mirror, began=timedelta(days=10), ended=timedelta(days=7))
    assert kept(mirror).share == pytest.approx(0.9)


def test_a_breach_counts_from_thirty_days_ago_on_and_until_now(mirror: Mirror) -> None:
    breach(mirror, began=timedelta(days=34), ended=timedelta(days=33))
    breach(mirror, began=timedelta(days=32), ended=timedelta(days=27))
    breach(mirror, began=timedelta(days=3), ended=None)
    assert kept(mirror).share == pytest.approx(0.8)
    assert [row.ended_at is None for row in kept(mirror).breaches] == [True, False, False]


def test_a_younger_branch_is_measured_since_it_was_seen(mirror: Mirror) -> None:
    Line(mirror.source, "x", NOW).commit("B", ago=4 * 86_400)
    breach(mirror, branch="x", began=timedelta(days=20), ended=timedelta(days=19))  # of one that had this name before
    breach(mirror, branch="x", began=timedelta(days=1), ended=None)
    assert kept(mirror, "x").share == pytest.approx(0.75)
    assert kept(mirror, "x").since == NOW - timedelta(days=4)


def test_what_nobody_knew_counts_neither_as_kept_nor_as_missed(mirror: Mirror) -> None:
    breach(mirror, began=timedelta(days=10), ended=timedelta(days=7))
    for minutes, ago in (
        (5, timedelta(hours=3)),
        (60, timedelta(hours=3)),
        (60, timedelta(days=5)),
        (5, timedelta(hours=50)),
    ):
        began = (NOW - ago).replace(minute=0, second=0, microsecond=0)
        span = {"began_at": began, "ends_at": began + timedelta(minutes=minutes), "read_at": began}
        Measure.objects.create(mirror=mirror, minutes=minutes, lag_seconds=None, **span)
    known = timedelta(days=30) - timedelta(minutes=65)
    assert kept(mirror).unknown == timedelta(minutes=65)
    assert kept(mirror).share == pytest.approx(1 - timedelta(days=3) / known)
    mirror.source.looked_at = NOW - timedelta(hours=2)
    assert kept(mirror).unknown == timedelta(minutes=65, hours=2)


def test_of_what_nobody_watched_nothing_is_known(mirror: Mirror) -> None:
    assert kept(mirror, "nothing").share is None
    mirror.watched_since = None
    assert (kept(mirror).share, kept(mirror).since) == (None, None)
    mirror.watched_since = NOW
    assert kept(mirror).share is None


# --- the API ----------------------------------------------------------------------------------------------------------


def test_lag_is_told_by_branch_with_target_and_breaches(lm: Deployment, api: Api) -> None:
    promoted(lm)
    held_back(lm, seconds=1000)
    status, told = api.call("GET", LAG)
    assert (status, told["rpo_seconds"], told["target_seconds"]) == (200, None, 300)
    [main] = told["results"]
    assert main["lag_seconds"] == pytest.approx(1000, abs=20)
    assert (main["branch"], main["pending_commits"], main["breaches"][0]["ended_at"]) == ("main", 1, None)
    # Two days and a thousand seconds were watched, of which the last seven hundred were too late.
    assert main["attainment_30d"] == pytest.approx(1 - 700 / (2 * 86_400 + 1000), abs=1e-4)
    assert told["as_of"].endswith("Z")


def test_lag_comes_in_pages(lm: Deployment, api: Api) -> None:
    commit = promoted(lm)
    lm.lake.repository.branches |= {"b": commit, "c": commit}
    lm.work(1)
    told = api.call("GET", f"{LAG}?amount=2")[1]
    assert [row["branch"] for row in told["results"]] == ["b", "c"]
    told = api.call("GET", f"{LAG}?amount=2&after={told['pagination']['next_offset']}")[1]
    assert ([row["branch"] for row in told["results"]], told["pagination"]["has_more"]) == (["main"], False)


def test_many_branches_and_breaches_cost_no_more_queries(mirror: Mirror, api: Api) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert api.call("GET", LAG)[0] == 200
        return len(asked)

    queries()
    before = queries()
    for n in range(5):
        line = Line(mirror.source, f"b{n}", NOW)
        line.commit("B", ago=900)
        for days in range(1, 8):
            breach(mirror, branch=f"b{n}", began=timedelta(days=days), ended=timedelta(days=days - 0.5))
    assert queries() == before


def test_lag_needs_the_right_to_list(lm: Deployment, outsider: User) -> None:
    assert Api(outsider).call("GET", LAG)[0] == 403


def test_a_branch_is_late_by_the_mirror_s_own_target(lm: Deployment) -> None:
    promoted(lm)
    held_back(lm, seconds=40)
    mirror = Mirror.objects.select_related("source").get()
    assert mirror_status(mirror).state is not State.LATE
    mirror.rpo_seconds = 10
    assert mirror_status(mirror).state is State.LATE
    assert "The target is 10 s." in mirror_status(mirror).sentence


@pytest.mark.parametrize("value", [0, -1, "60", True, 1.5, 31 * 86_400])
def test_a_target_that_is_none_is_refused(lm: Deployment, api: Api, value: Any) -> None:
    status, told = api.call("PATCH", LAG.removesuffix("/lag"), {"rpo_seconds": value})
    assert status == 400
    assert "rpo_seconds" in told["message"]


def test_a_target_is_taken_back_with_null(lm: Deployment, api: Api) -> None:
    for value in (60, None):
        assert api.call("PATCH", LAG.removesuffix("/lag"), {"rpo_seconds": value})[1]["rpo_seconds"] == value
