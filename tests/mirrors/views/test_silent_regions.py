"""What pages and API say of a region that does not answer: what was seen there last, never that it is so now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from db import clock
from installations.models import Contact
from jobs.models import Duty
from mirrors.models import Blocker, Mirror, MirrorDuty, Repository
from mirrors.status.readable_regions import places_of
from tests.api import Api
from tests.mirrors.factories import make_company
from tests.mirrors.views.test_pages import text

pytestmark = pytest.mark.django_db
BANNER = "What this page says of us-east-1 may be out of date."


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company(clock.now())


def silent(region: str = "us-east-1", service: str = "lakefs", *, seconds: float = 48) -> None:
    """A region's service has not answered for so long."""
    now = clock.now()
    failing = {"asked_at": now, "failing_since": now - timedelta(seconds=seconds), "kind": "unreachable"}
    Contact.objects.update_or_create(region=region, service=service, defaults=failing)


def head_of(mirror: Mirror) -> str:
    head = mirror.branches.filter(name="main").get().head
    assert mirror.commits.filter(commit__sha=head, data="complete").exists()
    return head


def answers(mirror: Mirror) -> dict[str, tuple[bool | None, str]]:
    _, places = places_of(list(Mirror.objects.filter(pk=mirror.pk).select_related("source")), head_of(mirror))
    return {place.region: (place.readable.answer, place.readable.reason) for place in places}


@pytest.mark.parametrize("service", ["lakefs", "store"])
def test_nothing_is_readable_where_nobody_answers(company: dict[str, Mirror], service: str) -> None:
    mirror = company["models-eu"]
    assert {answer for answer, _ in answers(mirror).values()} == {True}
    silent(service=service)
    told = answers(mirror)
    assert told["eu-west-1"] == (True, "")
    word = "lakeFS" if service == "lakefs" else "store"
    answer, reason = told["us-east-1"]
    assert answer is None
    assert reason.startswith(f"the {word} of us-east-1 has not answered for 48 s; it was complete there ")
    silent("eu-west-1")
    assert {answer for answer, _ in answers(mirror).values()} == {None}


def test_a_short_silence_is_not_told(company: dict[str, Mirror]) -> None:
    silent(seconds=5)
    assert {answer for answer, _ in answers(company["models-eu"]).values()} == {True}


def test_what_was_not_looked_at_for_long_is_not_readable_now(company: dict[str, Mirror]) -> None:
    mirror = company["models-eu"]
    Repository.objects.update(looked_at=clock.now() - timedelta(hours=2))
    assert answers(mirror)["us-east-1"] == (None, "it was complete there 2 h ago, and nobody has checked since")
    ended = {"queue": "q", "due_at": clock.now() - timedelta(hours=5), "ended_at": clock.now() - timedelta(hours=5)}
    Duty.objects.update_or_create(kind=MirrorDuty.VALIDATE, subject=mirror.pk, defaults=ended)
    assert answers(mirror)["eu-west-1"][0] is None


def test_pages_of_a_commit_tell_of_the_outage(olga: Client, company: dict[str, Mirror]) -> None:
    sha = head_of(company["models-eu"])
    pages = [f"/mirrors/models-eu/commits/{sha}/", f"/commits/{sha}/"]
    assert all(BANNER not in text(olga.get(page)) for page in pages)
    silent()
    for page in pages:
        said = text(olga.get(page))
        assert BANNER in said and "No answer: The lakeFS of us-east-1 has not answered for" in said
        assert "it was complete there" in said
    assert "source</span>" not in olga.get(pages[0]).content.decode()
    assert "Readable in 1 of 2 places, unknown in 1." in text(olga.get(pages[1]))


def test_pages_below_a_mirror_tell_of_the_outage(olga: Client, company: dict[str, Mirror]) -> None:
    silent()
    thing = Blocker.objects.filter(mirror=company["analytics-eu"], kind="object")[0]
    waits = company["analytics-eu"].commits.filter(data="waiting")[0].commit.sha
    mine = "/mirrors/analytics-eu"
    for page in (
        *("/", "/commits/", "/backlog/", "/runs/", "/held/", "/metrics/", "/settings/", "/waivers/"),
        *(f"/object/?address={thing.address}", f"/commits/{waits}/repair/", f"/commits/{waits}/waive/"),
    ):
        answer = olga.get(f"{mine}{page}")
        assert (answer.status_code, "has not answered for" in text(answer)) == (200, True), page


def test_the_api_tells_of_it(api: Api, company: dict[str, Mirror]) -> None:
    silent()
    sha = head_of(company["models-eu"])
    _, answer = api.call("GET", f"/service/replication/v1/commits/{sha}/regions")
    readable = {place["region"]: place["readable"] for place in answer["results"]}
    assert readable == {"eu-west-1": True, "us-east-1": None}
    _, commit = api.call("GET", f"/service/replication/v1/repositories/models/mirrors/models-eu/commits/{sha}")
    assert [outage["region"] for outage in commit["outages"]] == ["us-east-1"]
