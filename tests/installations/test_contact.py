"""Whether a region answers: asked by a duty, told once on every page where it matters."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from core.errors import Denied, LakeMirrorError, NotFound, RemoteFailure, Throttled, Unreachable
from core.installations.outages import OutageKind, Service
from db import clock
from installations import contact
from installations.models import Contact
from jobs.models import Duty
from mirrors.models import Mirror
from rbac.models import User
from tests.api import Api
from tests.console.test_metrics import scrape
from tests.mirrors.harness import Deployment
from tests.mirrors.status.test_told_no_better import damage
from tests.mirrors.views.test_pages import text

pytestmark = pytest.mark.django_db

DOWN = Unreachable("http://eu:8000 did not answer: ask for the version")


def asked(lm: Deployment, region: str = "eu-west-1", service: Service = Service.LAKEFS) -> Contact:
    """One round of asking, as the queue would have it done."""
    contact.look_round()
    row = Contact.objects.get(region=region, service=service.value)
    lm.run(Duty.objects.get(kind=contact.DUTY, subject=row.pk).pk)
    row.refresh_from_db()
    return row


def failing(lm: Deployment, error: LakeMirrorError = DOWN, *, seconds: float = 46) -> Contact:
    """The lakeFS of eu-west-1 has been failing for so long, and still is."""
    lm.eu.failing["server"] = error
    row = asked(lm)
    Contact.objects.filter(pk=row.pk).update(failing_since=clock.now() - timedelta(seconds=seconds))
    return asked(lm)


def test_every_region_is_asked_for_both_of_its_services(lm: Deployment) -> None:
    contact.look_round()
    contact.look_round()
    regions = {"us-east-1", "eu-west-1", "ap-southeast-2"}
    rows = set(Contact.objects.values_list("region", "service"))
    assert rows == {(region, service.value) for region in regions for service in Service}
    assert set(Duty.objects.filter(kind=contact.DUTY).values_list("subject", flat=True)) == set(
        Contact.objects.values_list("pk", flat=True)
    )


def test_who_answers_is_in_order(lm: Deployment) -> None:
    row = asked(lm)
    assert row.answered_at and row.failing_since is None and not contact.outages()


def test_a_moment_without_an_answer_is_no_outage(lm: Deployment) -> None:
    lm.eu.failing["server"] = DOWN
    assert asked(lm).failing_since
    assert not contact.outages()


def test_an_outage_lasts_from_the_first_failure_to_the_next_answer(lm: Deployment) -> None:
    first = failing(lm)
    [outage] = contact.outages()
    assert (outage.region, outage.service, outage.kind) == ("eu-west-1", Service.LAKEFS, OutageKind.UNREACHABLE)
    assert outage.since == first.failing_since and "did not answer" in outage.problem
    lm.eu.failing.clear()
    asked(lm)
    assert not contact.outages()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RemoteFailure("500"), OutageKind.FAILING),
        (Denied("401"), OutageKind.REFUSED),
        (Throttled("429"), None),
        (NotFound("too old"), None),
    ],
)
def test_what_kind_of_trouble_it_is(lm: Deployment, error: LakeMirrorError, kind: OutageKind | None) -> None:
    failing(lm, error)
    assert [outage.kind for outage in contact.outages()] == ([kind] if kind else [])


def test_a_store_is_asked_where_a_mirror_lies_and_its_refusal_says_nothing(lm: Deployment) -> None:
    lm.eu_store.down = DOWN
    assert asked(lm, service=Service.STORE).kind == "unreachable"
    lm.eu_store.down = Denied("403")
    assert asked(lm, service=Service.STORE).kind == ""


def test_what_nobody_asks_any_more_is_not_told(lm: Deployment) -> None:
    failing(lm)
    Contact.objects.update(asked_at=clock.now() - timedelta(minutes=5))
    assert not contact.outages()


def test_a_region_that_was_taken_away_is_not_asked_any_more(lm: Deployment) -> None:
    row = asked(lm)
    Contact.objects.filter(pk=row.pk).update(region="mars-1")
    lm.run(Duty.objects.get(kind=contact.DUTY, subject=row.pk).pk)
    assert not Contact.objects.filter(region="mars-1").exists()
    assert not Duty.objects.filter(kind=contact.DUTY, subject=row.pk).exists()


def test_the_overview_tells_it_once_and_never_that_nothing_needs_you(lm: Deployment, head: str, olga: Client) -> None:
    failing(lm)
    page = olga.get("/")
    said = text(page)
    assert "The lakeFS of eu-west-1 has not answered for 46 s: 1 mirror depends on it." in said
    assert "1 outage" in said and "nothing needs you" not in said
    assert "<title>(1) Overview" in page.content.decode()
    assert "lakeFS: no answer" in olga.get("/map/").content.decode()


def test_a_mirror_that_is_late_by_it_has_no_row_of_its_own(lm: Deployment, head: str, olga: Client) -> None:
    lm.lake.commit(files={"c": b"3"})
    lm.work()
    Mirror.objects.update(rpo_seconds=1)
    failing(lm)
    page = olga.get("/")
    assert not page.context["needing"]
    assert [cause.mirrors for cause in page.context["causes"]] == [["lake-eu"]]


def test_damage_is_told_beside_an_outage(lm: Deployment, head: str, olga: Client) -> None:
    damage(lm, head)
    failing(lm)
    assert [reading.mirror.name for reading in olga.get("/").context["needing"]] == ["lake-eu"]


def test_the_api_tells_it_with_the_mirrors(lm: Deployment, head: str, api: Api) -> None:
    failing(lm)
    [outage] = api.call("GET", "/service/replication/v1/overview")[1]["outages"]
    assert (outage["region"], outage["service"], outage["status"]) == ("eu-west-1", "lakefs", "unreachable")
    assert outage["mirrors"] == ["lake-eu"] and outage["reason"].startswith("The lakeFS of eu-west-1 has not answered")


def test_the_pages_of_installations_tell_it(lm: Deployment, olga: Client) -> None:
    failing(lm)
    assert "lakeFS: no answer" in text(olga.get("/installations/"))
    assert "The lakeFS of eu-west-1 has not answered for 46 s. Check its lakeFS server" in text(
        olga.get("/installations/eu-west-1/")
    )


def test_a_mirrors_page_tells_it_while_what_it_knows_is_still_new(lm: Deployment, head: str, olga: Client) -> None:
    assert "may be out of date" not in text(olga.get("/mirrors/lake-eu/"))
    failing(lm)
    shown = text(olga.get("/mirrors/lake-eu/"))
    assert "The lakeFS of eu-west-1 has not answered for 46 s. Check its lakeFS server" in shown
    assert "What this page says of eu-west-1 may be out of date." in shown
    lm.eu.failing.clear()
    asked(lm)
    lm.ap.failing["server"] = DOWN
    row = asked(lm, "ap-southeast-2")
    Contact.objects.filter(pk=row.pk).update(failing_since=clock.now() - timedelta(seconds=46))
    assert "may be out of date" not in text(olga.get("/mirrors/lake-eu/")), "no region of this mirror's"


def test_it_is_a_metric(lm: Deployment, owner: User) -> None:
    failing(lm)
    line = 'lakemirror_outage_seconds{region="eu-west-1",service="lakefs",status="unreachable"} 46'
    assert line in scrape(owner).content.decode()
