"""The checks of a mirror, as programs ask for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from jobs.models import Duty
from mirrors.models import Mirror, Run
from rbac.models import User
from tests.api import BODY, MIRRORS, Api
from tests.mirrors.factories import make_mirror, make_repository, run_check
from tests.mirrors.harness import deployment

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)
RUNS = f"{MIRRORS}/lake-eu/runs"


@pytest.fixture
def mirror() -> Mirror:
    return make_mirror("lake-eu", make_repository("lake", now=NOW), now=NOW)


@pytest.fixture
def at_nine() -> Iterator[None]:
    with mock.patch("db.clock.now", return_value=NOW):
        yield


def running(mirror: Mirror, *, done: int = 5) -> Run:
    """Twenty ranges, begun ten seconds ago."""
    run = run_check(mirror, now=NOW, ranges=20, done=done)
    run.started_at, run.entries = NOW - timedelta(seconds=10), 1000 * done
    run.save()
    return run


def ended(mirror: Mirror, **more: Any) -> Run:
    known = {"job": "check", "outcome": "done", "ranges": 3, "ranges_done": 3, "entries": 900, "looked_up": 40}
    times = {"started_at": NOW - timedelta(seconds=100), "ended_at": NOW - timedelta(seconds=97)}
    return Run.objects.create(mirror=mirror, **(known | times | more))


def asked(api: Api, number: object) -> Any:
    status, answer = api.call("GET", f"{RUNS}/{number}")
    assert status == 200, answer
    return answer


def test_a_run_that_ended_tells_how_it_went(api: Api, mirror: Mirror, at_nine: None) -> None:
    run = ended(mirror, requests=7, problems=2, lacking=5, copied=3, copied_bytes=1200)
    assert asked(api, run.pk) == {
        "id": run.pk,
        "job": "check",
        "outcome": "done",
        "error": None,
        "started_at": "2026-11-21T09:14:54.000Z",
        "ended_at": "2026-11-21T09:14:57.000Z",
        "seconds": 3.0,
        "ranges": 3,
        "ranges_done": 3,
        "entries": 900,
        "looked_up": 40,
        "requests": 7,
        "problems": 2,
        "lacking": 5,
        "copied": 3,
        "copied_bytes": 1200,
        "entries_per_second": 300.0,
        "eta": None,
        "as_of": "2026-11-21T09:16:34.000Z",
    }


def test_a_running_one_tells_its_pace_and_when_it_will_be_done(api: Api, mirror: Mirror, at_nine: None) -> None:
    told = asked(api, running(mirror).pk)
    assert (told["outcome"], told["ended_at"], told["seconds"]) == ("running", None, 10.0)
    assert (told["entries_per_second"], told["eta"]) == (500.0, "2026-11-21T09:17:04.000Z")


def test_before_the_first_range_nobody_knows(api: Api, mirror: Mirror, at_nine: None) -> None:
    told = asked(api, running(mirror, done=0).pk)
    assert (told["outcome"], told["entries_per_second"], told["eta"]) == ("running", None, None)


def test_one_whose_worker_is_lost_is_not_running(api: Api, mirror: Mirror, at_nine: None) -> None:
    run = running(mirror)
    Duty.objects.update(until=NOW - timedelta(seconds=1))
    told = asked(api, run.pk)
    unknown = ("outcome", "seconds", "entries_per_second", "eta")
    assert [told[name] for name in unknown] == [None] * 4
    assert told["ranges_done"] == 5


def test_a_failed_one_tells_why(api: Api, mirror: Mirror) -> None:
    told = asked(api, ended(mirror, outcome="failed", error="Spark did not answer").pk)
    assert (told["outcome"], told["error"]) == ("failed", "Spark did not answer")


def test_runs_come_in_pages_the_last_one_first(api: Api, mirror: Mirror) -> None:
    made = [ended(mirror).pk for _ in range(3)]
    first = api.call("GET", f"{RUNS}?amount=2")[1]
    rest = api.call("GET", f"{RUNS}?amount=2&after={first['pagination']['next_offset']}")[1]
    assert [row["id"] for row in first["results"] + rest["results"]] == made[::-1]


def test_the_number_of_queries_does_not_grow(api: Api, mirror: Mirror) -> None:
    ended(mirror)
    api.call("GET", RUNS)
    with CaptureQueriesContext(connection) as few:
        api.call("GET", RUNS)
    for _ in range(20):
        ended(mirror)
    with CaptureQueriesContext(connection) as many:
        assert len(api.call("GET", RUNS)[1]["results"]) == 21
    assert len(many) == len(few)


def test_another_mirrors_run_is_not_found(api: Api, mirror: Mirror) -> None:
    other = make_mirror("lake-ap", mirror.source, region="ap-southeast-2", now=NOW)
    assert api.call("GET", f"{RUNS}/{ended(other).pk}")[0] == 404
    assert api.call("GET", f"{RUNS}/{10**30}")[0] == 404


def test_outsiders_see_nothing(outsider: User, mirror: Mirror) -> None:
    run = ended(mirror)
    assert [Api(outsider).call("GET", path)[0] for path in (RUNS, f"{RUNS}/{run.pk}")] == [403, 403]


@pytest.mark.django_db(transaction=True)
def test_what_the_validator_did_is_there(api: Api) -> None:
    with deployment() as lm:
        api.call("POST", MIRRORS, BODY)
        lm.lake.commit(files={"a": b"1", "b": b"2"})
        lm.arrive()
        lm.work()
        told = api.call("GET", RUNS)[1]["results"][0]
    assert (told["outcome"], told["ranges_done"], told["entries"], told["problems"]) == ("done", 1, 2, 0)
