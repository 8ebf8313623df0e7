"""Lag, backlog and throughput of a mirror over time, as programs ask for them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mirrors.models import Measure, Mirror, Promotion
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.mirrors.factories import Line, make_measures, make_mirror, make_repository

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 9, 16, 34, tzinfo=UTC)
METRICS = f"{MIRRORS}/lake-eu/metrics"


@pytest.fixture(autouse=True)
def at_nine() -> Iterator[None]:
    with mock.patch("db.clock.now", return_value=NOW):
        yield


@pytest.fixture
def mirror() -> Mirror:
    return make_mirror("lake-eu", make_repository("lake", now=NOW), now=NOW, rpo_seconds=900)


def add(mirror: Mirror, minutes: int, ago: timedelta, **known: Any) -> None:
    """A measure that began so long before the running one of its length."""
    length = timedelta(minutes=minutes)
    at = NOW - timedelta(minutes=NOW.minute % minutes, seconds=NOW.second) - ago
    Measure.objects.create(mirror=mirror, minutes=minutes, began_at=at, ends_at=at + length, **known)


def asked(api: Api, query: str = "") -> Any:
    status, answer = api.call("GET", METRICS + query)
    assert status == 200, answer
    return answer


def test_a_day_is_told_in_five_minutes_each_with_what_is_known(api: Api, mirror: Mirror) -> None:
    read = NOW - timedelta(seconds=4)
    known = {"commits_seen": 6, "commits_mirrored": 5, "objects_new": 3, "bytes_new": 1024}
    known |= {"lag_seconds": 3.5, "backlog": 4, "backlog_last": 1, "missing": 7, "promoted": 2, "checks": 1}
    add(mirror, 5, timedelta(), read_at=read, objects_checked=10, bytes_checked=4096, **known)
    add(mirror, 60, timedelta(), lag_seconds=99)
    told = asked(api)
    assert (told["period"], told["step_seconds"], told["target_seconds"]) == ("24h", 300, 900)
    assert (told["as_of"], told["read_at"]) == ("2026-11-21T09:16:34.000Z", "2026-11-21T09:16:30.000Z")
    assert len(told["results"]) == 288
    assert told["results"][-1] == {
        "from": "2026-11-21T09:15:00.000Z",
        "until": "2026-11-21T09:20:00.000Z",
        "lag_seconds": 3.5,
        "branch_lag_seconds": None,
        "backlog_commits": 4,
        "backlog_commits_last": 1,
        "missing": 7,
        "promoted_commits": 2,
        "checks": 1,
        "objects_checked": 10,
        "bytes_checked": 4096,
        "seen_commits": 6,
        "mirrored_commits": 5,
        "new_objects": 3,
        "new_bytes": 1024,
    }


def test_a_measure_of_an_older_version_tells_nothing_of_what_was_new(api: Api, mirror: Mirror) -> None:
    add(mirror, 5, timedelta(), objects_checked=10)
    last = asked(api)["results"][-1]
    assert (last["objects_checked"], last["new_objects"], last["seen_commits"]) == (10, None, None)


def test_the_lag_of_one_branch_is_told_from_its_moves(api: Api, mirror: Mirror) -> None:
    line = Line(mirror.source, "main", NOW)
    first = line.commit("one", ago=3000)
    line.commit("two", ago=600)
    third = line.commit("three", ago=200)
    moves = ((first, 2900, "first-promotion"), (third, 100, "advanced"))
    for commit, ago, why in moves:
        at = NOW - timedelta(seconds=ago)
        Promotion.objects.create(mirror=mirror, branch="main", to_commit=commit.sha, why=why, at=at)
    for minutes in range(0, 60, 5):
        add(mirror, 5, timedelta(minutes=minutes), lag_seconds=0)
    told = [step["branch_lag_seconds"] for step in asked(api, "?period=1h&branch=main")["results"]]
    # Of 9:16:34: "two" was seen at 9:06:34, and passed by with "three" at 9:14:54.
    assert told == [None, 0, 0, 0, 0, 0, 0, 0, 0, 206, 500, 0]
    assert {step["branch_lag_seconds"] for step in asked(api, "?period=1h")["results"]} == {None}


def test_a_branch_that_somebody_else_moved_is_not_known_to_be_on_time(api: Api, mirror: Mirror) -> None:
    line = Line(mirror.source, "main", NOW)
    first = line.commit("one", ago=3000)
    for ago, why in ((2900, "first-promotion"), (500, "moved-by-somebody"), (100, "put-back")):
        at = NOW - timedelta(seconds=ago)
        Promotion.objects.create(mirror=mirror, branch="main", to_commit=first.sha, why=why, at=at)
    for minutes in range(0, 60, 5):
        add(mirror, 5, timedelta(minutes=minutes), lag_seconds=0)
    told = [step["branch_lag_seconds"] for step in asked(api, "?period=1h&branch=main")["results"]]
    assert told[-4:] == [0, None, None, 0]


def test_a_branch_that_never_was_is_refused(api: Api, mirror: Mirror) -> None:
    status, answer = api.call("GET", METRICS + "?branch=nix")
    assert (status, answer["field"]) == (400, "branch")
    assert "there is no branch 'nix' at lake-eu" in answer["message"]


def test_what_nobody_measured_is_null_and_not_zero(api: Api, mirror: Mirror) -> None:
    add(mirror, 5, timedelta(minutes=10), objects_checked=8)
    told = asked(api)
    unread, silent = told["results"][-3], told["results"][-2]
    assert told["read_at"] is None
    assert (unread["lag_seconds"], unread["promoted_commits"], unread["objects_checked"]) == (None, None, 8)
    assert {value for name, value in silent.items() if name not in ("from", "until")} == {None}


@pytest.mark.parametrize(("period", "steps", "hours"), [("7d", 168, 1), ("30d", 180, 4), ("90d", 180, 12)])
def test_longer_periods_have_longer_steps(api: Api, mirror: Mirror, period: str, steps: int, hours: int) -> None:
    add(mirror, 60, timedelta(), lag_seconds=5, backlog=1, backlog_last=1, promoted=3, objects_checked=100)
    add(mirror, 60, timedelta(hours=1), lag_seconds=60, backlog=9, backlog_last=8, promoted=4, objects_checked=50)
    told = asked(api, f"?period={period}")
    assert (len(told["results"]), told["step_seconds"]) == (steps, hours * 3600)
    last = told["results"][-1]
    together = (60, 9, 1, 7, 150) if hours > 1 else (5, 1, 1, 3, 100)
    fields = ("lag_seconds", "backlog_commits", "backlog_commits_last", "promoted_commits", "objects_checked")
    assert tuple(last[field] for field in fields) == together


def test_the_steps_as_a_file(api: Api, mirror: Mirror) -> None:
    add(mirror, 60, timedelta(hours=2), lag_seconds=5)
    answer = api.client.get(f"{METRICS}?period=7d&format=csv", headers=api.headers)
    assert answer["Content-Disposition"] == 'attachment; filename="lake-eu-metrics-7d.csv"'
    rows = list(csv.DictReader(b"".join(answer.streaming_content).decode().splitlines()))  # type: ignore[attr-defined]
    assert (len(rows), rows[-3]["from"], rows[-3]["lag_seconds"]) == (168, "2026-11-21T07:00:00.000Z", "5.0")
    assert rows[-2]["lag_seconds"] == ""


@pytest.mark.parametrize(("query", "wrong"), [("?period=1y", "period"), ("?format=xls", "format")])
def test_other_periods_and_formats_are_refused(api: Api, mirror: Mirror, query: str, wrong: str) -> None:
    status, told = api.call("GET", METRICS + query)
    assert (status, wrong in told["message"]) == (400, True)


def test_metrics_need_the_right_to_list_and_a_mirror(api: Api, outsider: User, mirror: Mirror) -> None:
    assert Api(outsider).call("GET", METRICS)[0] == 403
    assert api.call("GET", METRICS.replace("lake-eu", "other"))[0] == 404


def test_a_full_quarter_takes_as_many_queries_as_an_empty_one(api: Api, mirror: Mirror) -> None:
    def queries(period: str) -> int:
        with CaptureQueriesContext(connection) as made:
            asked(api, f"?period={period}")
        return len(made)

    queries("90d")  # notes when the key was last used
    before = queries("90d")
    make_measures(mirror, now=NOW, days=90)
    assert queries("90d") == queries("24h") == before
