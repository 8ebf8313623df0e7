"""Lag over the last hour beside each mirror's name: of many in one query, and shown where mirrors are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest
from django.test import Client

from core.mirroring.states import State
from mirrors.models import Measure, Mirror
from mirrors.status.sparks import STEP, sparks
from mirrors.templatetags import charts
from mirrors.transitions.measures import began
from tests.mirrors.factories import make_company, make_mirror, make_repository
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 13, 16, 34, tzinfo=UTC)


def measure(mirror: Mirror, minutes_ago: int, seconds: float | None) -> None:
    at = NOW.replace(minute=15, second=0) - timedelta(minutes=minutes_ago)
    until = at + timedelta(minutes=5)
    Measure.objects.create(mirror=mirror, minutes=5, began_at=at, ends_at=until, lag_seconds=seconds)


@pytest.fixture
def pair() -> list[Mirror]:
    source = make_repository("lake", now=NOW)
    return [
        make_mirror("lake-ap", source, region="ap-south-1", now=NOW),
        make_mirror("lake-eu", source, now=NOW, rpo_seconds=900),
    ]


def test_several_mirrors_take_one_query(pair: list[Mirror], django_assert_num_queries: object) -> None:
    measure(pair[0], 60, 7)  # just before the hour
    measure(pair[0], 55, 840)
    measure(pair[0], 0, 2)
    measure(pair[1], 5, None)
    with django_assert_num_queries(1):  # type: ignore[operator]
        drawn = sparks(pair, NOW)
    assert drawn[pair[0].pk].values == [840, *[None] * 10, 2]
    assert drawn[pair[0].pk].words == "Lag in the last hour: worst 14 min; target 5 min"
    assert drawn[pair[1].pk].words == "Lag in the last hour: not measured; target 15 min"


@pytest.mark.parametrize("address", ["/", "/mirrors/"])
def test_the_pages_of_mirrors_show_it_and_lead_to_more(olga: Client, pair: list[Mirror], address: str) -> None:
    measure(pair[0], 5, 0)
    with mock.patch("db.clock.now", return_value=NOW):
        page = olga.get(address).content.decode()
    assert 'href="/mirrors/lake-ap/metrics/" title="Lag in the last hour: none; target 5 min"' in page
    assert page.count('<a class="spark ') == 2


def test_the_page_of_a_mirror_shows_it_beside_the_figure(olga: Client) -> None:
    company = make_company()
    page = olga.get("/mirrors/analytics-eu/").content.decode()
    assert page.count(f'<a class="spark bad" href="/mirrors/{company["analytics-eu"].name}/metrics/"') == 1


@pytest.mark.parametrize(("into", "still"), [(0, 13), (94, 11), (295, 8)])
def test_a_mirror_that_catches_up_says_how_long_it_will_take(olga: Client, into: int, still: int) -> None:
    """From the peak on, by several readings; one that stands still, is blocked, or paused, says nothing. It counts
    from now, however many seconds of the running five minutes are over."""
    now = NOW.replace(minute=15, second=0) + timedelta(seconds=into)
    mirror = make_company(now)["analytics-eu"]
    for minutes, backlog in ((25, 2), (20, 90), (15, 60), (10, 30)):
        at = began(now, 5) - timedelta(minutes=minutes)
        Measure.objects.create(
            mirror=mirror, minutes=5, began_at=at, ends_at=at + STEP, read_at=at + STEP, backlog_last=backlog
        )
    as_if_it_went_on = mock.patch.object(charts, "CATCHING_UP", {*charts.CATCHING_UP, State.BLOCKED})
    with mock.patch("db.clock.now", return_value=now):
        assert "caught up in about" not in text(olga.get("/mirrors/analytics-eu/"))  # it is blocked
    with mock.patch("db.clock.now", return_value=now), as_if_it_went_on:
        told = text(olga.get("/mirrors/analytics-eu/"))
        assert "· caught up in about 1 min" in told  # it should be done by now
        Measure.objects.filter(backlog_last=30).update(backlog_last=58)
        assert f"· caught up in about {still} min" in text(olga.get("/mirrors/analytics-eu/"))
        Measure.objects.filter(backlog_last=58).update(backlog_last=90)
        assert "caught up in about" not in text(olga.get("/mirrors/analytics-eu/"))  # it stands still
        Measure.objects.filter(began_at=began(now, 5) - timedelta(minutes=10)).update(backlog_last=58)
        Mirror.objects.filter(pk=mirror.pk).update(paused=True)
        assert "caught up in about" not in text(olga.get("/mirrors/analytics-eu/"))
