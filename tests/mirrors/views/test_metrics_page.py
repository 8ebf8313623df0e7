"""A mirror over time, on its page: four pictures, what they say, and the same figures as a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from mirrors.models import Measure, Mirror, Promotion
from tests.mirrors.factories import Line, make_measures, make_mirror, make_repository
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 13, 16, 34, tzinfo=UTC)
PAGE = "/mirrors/lake-eu/metrics/"


@pytest.fixture(autouse=True)
def at_one() -> Iterator[None]:
    with mock.patch("db.clock.now", return_value=NOW):
        yield


@pytest.fixture
def mirror() -> Mirror:
    return make_mirror("lake-eu", make_repository("lake", now=NOW), now=NOW, rpo_seconds=900)


def add(mirror: Mirror, at: datetime, **known: Any) -> None:
    """Five minutes."""
    until = at + timedelta(minutes=5)
    Measure.objects.create(mirror=mirror, minutes=5, began_at=at, ends_at=until, read_at=min(until, NOW), **known)


def one(**clock: int) -> datetime:
    return NOW.replace(second=0, **clock)


def test_the_pictures_say_the_worst_and_when_it_was(olga: Client, mirror: Mirror) -> None:
    add(mirror, one(hour=13, minute=0), lag_seconds=240, backlog=7, backlog_last=3, objects_new=1000, commits_seen=8)
    add(
        mirror,
        one(hour=13, minute=5),
        lag_seconds=2,
        backlog=1,
        backlog_last=0,
        objects_new=10,
        bytes_new=4096,
        commits_mirrored=7,
    )
    said = text(olga.get(PAGE))
    assert "Worst 4 min at 13:00; target 15 min." in said
    assert "Most 7 commits at 13:00; 0 at the last reading." in said
    assert "1,010 objects in total; peak 12,000 an hour at 13:00." in said
    assert "4.0 KB in total; peak 48.0 KB an hour at 13:05." in said
    assert "8 commits seen, 7 mirrored." in said


def test_a_quiet_mirror_is_told_as_such(olga: Client, mirror: Mirror) -> None:
    add(mirror, one(minute=15), lag_seconds=0, backlog=0, backlog_last=0, promoted=0, commits_seen=0)
    said = text(olga.get(PAGE))
    assert "Never behind; target 15 min." in said and "No branch was behind." in said
    assert said.count("Nothing new was validated.") == 2


def test_all_of_the_chosen_range_is_drawn(olga: Client, mirror: Mirror) -> None:
    add(mirror, one(minute=15), lag_seconds=3, backlog=1, backlog_last=0, commits_seen=1, commits_mirrored=1)
    page = olga.get(PAGE).content.decode()
    [line] = re.findall(r'<path class="line lag" d="([^"]*)"', page)[:1]
    assert line.startswith("M996.528 ") and line.endswith("H1000")  # the last of 288 steps
    gaps = re.findall(r'<rect class="gap" x="([^"]*)" width="([^"]*)"', page)
    assert sorted(gaps) == [("0.0", "1000.0"), *[("0.0", "996.53")] * 5]  # of the branch no move is known
    said = text(olga.get(PAGE))
    assert "measured since 13:15:00" in said and "13:15 so far" in said and "not measured:" not in said


def test_a_time_without_a_measure_is_a_gap_and_no_row(olga: Client, mirror: Mirror) -> None:
    for minute in (0, 15):
        add(mirror, one(minute=minute), lag_seconds=1, backlog=0, backlog_last=0, commits_seen=0)
    answer = olga.get(PAGE)
    page = answer.content.decode()
    assert page.count('class="gap"') == 2 * 5 + 1  # before the first, and between the two
    assert page.count('<tr id="m-') == 2
    assert "not measured: 10 min in total" in text(answer)


def test_each_place_says_its_value_and_time(olga: Client, mirror: Mirror) -> None:
    """Three steps of five minutes share a place, and the worst of them is told."""
    add(mirror, one(hour=12, minute=45), lag_seconds=240)
    add(mirror, one(hour=13, minute=0), lag_seconds=2)
    add(mirror, one(hour=13, minute=5), lag_seconds=3)
    page = olga.get(PAGE).content.decode()
    lag = page[page.index('id="plot-lag"') : page.index('id="plot-backlog"')]
    assert re.findall(r'tabindex="(0|-1)" aria-label="([^"]*)"', lag) == [
        ("-1", "4 min, 12:35 to 12:50 UTC"),
        ("-1", "2 s, 12:50 to 13:05 UTC"),
        ("0", "3 s, 13:05 to 13:20 UTC"),
    ]


def test_what_is_later_than_the_target_stands_out(olga: Client, mirror: Mirror) -> None:
    add(mirror, one(minute=0), lag_seconds=901)
    add(mirror, one(minute=5), lag_seconds=900)
    assert olga.get(PAGE).content.decode().count('<td class="right bad" data-label="Worst lag">') == 1


def test_what_nobody_knows_is_a_dash(olga: Client, mirror: Mirror) -> None:
    add(mirror, one(minute=0), objects_checked=5)
    said = text(olga.get(PAGE))
    assert "Not measured; target 15 min." in said and "None" not in said
    assert "13:00 — — — — — — — — — — — 5 0" in said


def test_before_the_first_measure_the_page_says_when_it_comes(olga: Client, mirror: Mirror) -> None:
    said = text(olga.get(PAGE))
    assert "While a worker runs, the first one is taken within 1 min." in said
    assert "/metrics?period=24h" in said


@pytest.mark.parametrize("period", ["1h", "24h", "7d", "30d", "90d"])
def test_each_period_has_an_address_and_leads_to_its_file(olga: Client, mirror: Mirror, period: str) -> None:
    make_measures(mirror, now=NOW, days=40)
    page = olga.get(f"{PAGE}?period={period}").content.decode()
    assert f'href="?period={period}" aria-current="true"' in page
    assert f"/mirrors/lake-eu/metrics?period={period}&amp;format=csv" in page
    assert "&amp;branch=" not in page
    assert page.count('<figure class="card plot"') == 6


def test_another_period_is_refused(olga: Client, mirror: Mirror) -> None:
    answer = olga.get(f"{PAGE}?period=1y")
    assert answer.status_code == 400
    assert "24h, 7d, 30d, 90d" in text(answer)


def test_a_month_of_measures_costs_no_more_queries(olga: Client, mirror: Mirror) -> None:
    def queries(period: str) -> int:
        with CaptureQueriesContext(connection) as made:
            assert olga.get(f"{PAGE}?period={period}").status_code == 200
        return len(made)

    queries("30d")
    before = queries("30d")
    make_measures(mirror, now=NOW, days=30)
    assert queries("30d") == queries("24h") == before


def test_another_branch_is_chosen_by_name_and_a_wrong_one_refused(olga: Client, mirror: Mirror) -> None:
    line = Line(mirror.source, "dev/x & y", NOW)
    commit = line.commit("one", ago=3000)
    moved_at = NOW - timedelta(seconds=2900)
    Promotion.objects.create(mirror=mirror, branch=line.name, to_commit=commit.sha, why="first-promotion", at=moved_at)
    add(mirror, one(minute=15), lag_seconds=0)
    answer = olga.get(PAGE, {"branch": line.name})
    assert "Lag of dev/x & y Never behind; target 15 min." in text(answer)
    assert "&amp;branch=dev/x%20%26%20y&amp;format=csv" in answer.content.decode()
    refused = olga.get(PAGE, {"branch": "nix"})
    assert refused.status_code == 400
    assert "There is no branch 'nix' at lake-eu." in text(refused)
