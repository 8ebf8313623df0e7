"""Whether a region answers: asked by a duty, told once on every page where it matters."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from console.metrics.prometheus import gauges
from core.errors import Denied, LakeMirrorError, NotFound, RemoteFailure, Throttled, Unreachable
from core.installations.outages import OutageKind, Service
from core.mirroring.states import State
from db import clock
from installations import contact
from installations.models import Contact
from jobs.models import Duty
from mirrors.models import Mirror
from mirrors.status.mirror import mirror_status
from rbac.models import User
from tests.api import Api
from tests.console.test_metrics import scrape
from tests.exports.test_pages import HEAD, an_export
from tests.mirrors.harness import Deployment
from tests.mirrors.status.test_told_no_better import damage, reader
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
    assert re.search(r"The lakeFS of eu-west-1 has not answered for 4\d s: 1 mirror depends on it\.", said)
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
    failing(lm)
    shown = text(olga.get("/mirrors/lake-eu/"))
    assert shown.startswith("Unknown")
    assert re.search(r"The lakeFS of eu-west-1 has not answered for 4\d s\. Check its lakeFS server", shown)
    assert "It was up to date when it was last checked." in shown
    assert "may be out of date" not in shown, "once is enough"
    lm.eu.failing.clear()
    asked(lm)
    lm.ap.failing["server"] = DOWN
    row = asked(lm, "ap-southeast-2")
    Contact.objects.filter(pk=row.pk).update(failing_since=clock.now() - timedelta(seconds=46))
    assert text(olga.get("/mirrors/lake-eu/")).startswith("Up to date"), "no region of this mirror's"


def test_lists_and_the_api_know_at_once_that_a_mirror_is_not_known_to_be_well(
    lm: Deployment, head: str, olga: Client, api: Api
) -> None:
    assert "1 of 1 mirror up to date; nothing needs you." in text(olga.get("/mirrors/"))
    failing(lm)
    listed = text(olga.get("/mirrors/"))
    assert "0 of 1 mirror up to date; 1 is unknown; lakeFS of eu-west-1: no answer." in listed
    assert "lakeFS of eu-west-1: no answer" in text(olga.get("/")).split("Lag, last hour")[1]
    [mirror] = api.call("GET", "/service/replication/v1/repositories/lake/mirrors")[1]["results"]
    assert (mirror["status"], mirror["reason_code"]) == ("Unknown", "destination_unreachable")
    assert [(one["region"], one["service"], one["status"]) for one in mirror["outages"]] == [
        ("eu-west-1", "lakefs", "unreachable")
    ]
    assert (mirror["branches"][0]["status"], mirror["branches"][0]["lag_seconds"]) == ("Unknown", None)
    assert "lakemirror_branch_lag_seconds{" not in "".join(gauge.text() for gauge in gauges(reader()))


def test_the_sources_store_alone_makes_no_mirror_unknown_and_is_told_beside_it(
    lm: Deployment, head: str, olga: Client
) -> None:
    contact.look_round()
    row = Contact.objects.get(region="us-east-1", service="store")
    now = clock.now()
    fails = {"kind": "unreachable", "problem": "no answer", "asked_at": now}
    Contact.objects.filter(pk=row.pk).update(failing_since=now - timedelta(seconds=46), **fails)
    assert "1 of 1 mirror up to date; Store of us-east-1: no answer." in text(olga.get("/mirrors/"))
    shown = text(olga.get("/mirrors/lake-eu/"))
    assert shown.startswith("Up to date") and "What this page says of us-east-1 may be out of date." in shown


def test_a_pause_says_nothing_better_in_an_outage(lm: Deployment, head: str) -> None:
    Mirror.objects.update(paused=True)
    assert "Nothing waits" in mirror_status(Mirror.objects.get()).sentence
    lm.us.failing["server"] = DOWN
    row = asked(lm, "us-east-1")
    Contact.objects.filter(pk=row.pk).update(failing_since=clock.now() - timedelta(seconds=46))
    told = mirror_status(Mirror.objects.get())
    assert told.state is State.PAUSED
    assert "Nothing waits" not in told.sentence and "The lakeFS of us-east-1 has not answered" in told.sentence


def test_exports_of_a_region_that_does_not_answer_are_not_in_order(lm: Deployment, head: str, olga: Client) -> None:
    place = "s3://company-bucket/main"
    an_export(region="eu-west-1", state="exported-successfully", last_success_ref=HEAD, path_at_success=place)
    [tile] = [one for one in olga.get("/").context["tiles"] if one.name == "Exports in order"]
    assert (tile.figure, tile.below) == ("1 / 1", "nothing needs you")
    failing(lm)
    page = olga.get("/")
    [tile] = [one for one in page.context["tiles"] if one.name == "Exports in order"]
    assert (tile.figure, tile.below) == ("0 / 1", "1 depends on a region that does not answer")
    assert "nothing needs you" not in text(page)
    listed = text(olga.get("/exports/"))
    assert "0 of 1 export up to date; 1 is unknown." in listed
    assert "The last complete export is of" in listed and "has not answered for" in listed


def test_it_is_a_metric(lm: Deployment, owner: User) -> None:
    failing(lm)
    line = 'lakemirror_outage_seconds{region="eu-west-1",service="lakefs",status="unreachable"} 46'
    assert line in scrape(owner).content.decode()
