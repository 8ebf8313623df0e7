"""The map of regions: what is drawn and what its table says, for whom, and that it stays readable."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.overview.region_map import Health, connections
from db import clock
from mirrors.models import Mirror
from mirrors.status.mirror import brief_statuses
from tests.mirrors.factories import make_company, make_mirror, make_repository
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


def listed() -> dict[tuple[str, str], Any]:
    made = connections(brief_statuses(Mirror.objects.live().select_related("source")))
    return {(one.origin, one.region): one for one in made}


def test_a_connection_is_as_well_as_the_worst_of_its_mirrors(company: Any) -> None:
    got = listed()
    assert set(got) == {("us-east-1", "eu-west-1"), ("eu-west-1", "us-east-1")}
    there, back = got["us-east-1", "eu-west-1"], got["eu-west-1", "us-east-1"]
    assert (there.health, there.mirrors) == (Health.BAD, len(company) - 1)
    assert back.health is Health.PAUSED and back.mirrors == 1
    Mirror.objects.exclude(name__in=["models-eu", "orders-eu"]).delete()
    assert listed()["us-east-1", "eu-west-1"].health is Health.BEHIND
    Mirror.objects.filter(name="orders-eu").delete()
    [alone] = listed().values()
    assert (alone.health, alone.up_to_date, alone.lag) == (Health.GOOD, 1, 0)


def test_health_is_told_by_a_sign_and_a_word_and_not_by_colour_alone(olga: Client, company: Any) -> None:
    answer = olga.get("/map/")
    page, said = answer.content.decode(), text(answer)
    assert page.count('<path class="way"') == 2
    assert "2 connections between regions: 1 needs attention, 1 paused." in said
    assert "us-east-1 → eu-west-1 ✕ needs attention" in said and "eu-west-1 → us-east-1 ‖ paused" in said
    assert 'aria-label="us-east-1 to eu-west-1: needs attention; ' in page
    assert page.count('href="/mirrors/?from=us-east-1&amp;region=eu-west-1&amp;sort=lag"') == 2


def test_the_overview_leads_there(olga: Client, company: Any) -> None:
    assert '<a class="button" href="/map/">Map</a>' in olga.get("/").content.decode()


def test_fifty_regions_are_a_table(olga: Client) -> None:
    now = clock.now()
    for number in range(50):
        source = make_repository(f"lake-{number}", region=f"region-{number}", now=now)
        make_mirror(f"mirror-{number}", source, region=f"region-{(number + 1) % 50}", now=now)
    answer = olga.get("/map/")
    page = answer.content.decode()
    assert '<path class="way"' not in page and page.count('<tbody id="c-') == 50
    assert "Too many regions or connections to draw" in text(answer)


def test_more_mirrors_cost_no_more_queries(olga: Client, company: Any) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as made:
            assert olga.get("/map/").status_code == 200
        return len(made)

    queries()
    before, now = queries(), clock.now()
    source = Mirror.objects.get(name="models-eu").source
    for number in range(20):
        make_mirror(f"more-{number}", source, region=f"far-{number % 4}", now=now)
    assert queries() <= before + 2


def test_without_mirrors_it_says_so_and_strangers_see_none(olga: Client, outsider: Any) -> None:
    assert "There is no mirror yet." in text(olga.get("/map/"))
    make_company()
    stranger = Client()
    stranger.force_login(outsider)
    assert stranger.get("/map/").status_code == 403
