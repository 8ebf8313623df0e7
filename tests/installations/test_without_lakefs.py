"""Installations that are a store alone: added, tested, asked, changed; nothing is said of a lakeFS that they lack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import transaction
from django.test import Client

from console.metrics.prometheus import gauges
from core.errors import Conflict, Invalid, NotFound, Unreachable
from core.installations.outages import Service
from core.installations.settings import Secrets, Wish, check_secrets, check_wish
from db import clock
from deployment import config
from deployment.wiring import clients, executors, region_settings
from installations import contact
from installations.models import Contact, Installation, InstallationTest
from installations.services import hold_lakefs, installation_create, installation_update
from installations.status import installation_reading
from jobs.models import Duty
from mirrors.models import Mirror, Repository
from mirrors.services.mirrors import _store, check_creation
from notifications.conditions import observe
from rbac.models import User
from tests.api import Api
from tests.mirrors.harness import Deployment, forget_installations
from tests.mirrors.page_text import text
from tests.replication.factories import a_rule

V1 = "/service/replication/v1"
pytestmark = pytest.mark.django_db

LANDING = Wish("landing", store_endpoint="http://s3.landing:9000", store_access_key_id="AKIALAND")
SECRETS = Secrets(store="store-of-landing")
LAKE = {"lakefs_endpoint": "http://lakefs.landing", "lakefs_access_key_id": "AKIALAKE"}
BODY = {
    "region": "landing",
    "store_endpoint": "http://s3.landing:9000",
    "store_access_key_id": "AKIALAND",
    "store_secret_access_key": "store-of-landing",
}
PAGE = "/installations/landing/"


@pytest.fixture(autouse=True)
def as_told() -> Iterator[None]:
    """What a test adds is gone after it."""
    forget_installations()
    yield
    forget_installations()


@pytest.fixture
def landing(owner: User) -> Installation:
    return installation_create(actor=owner, wish=LANDING, secrets=SECRETS)


def changed(owner: User, secrets: Secrets = Secrets(), **changes: Any) -> Installation:  # noqa: B008
    return installation_update(actor=owner, region="landing", wish=replace(LANDING, **changes), secrets=secrets)


# --- what it is -------------------------------------------------------------------------------------------------------


def test_it_is_a_region_with_a_store_and_no_lakefs(landing: Installation) -> None:
    assert "landing" in region_settings.names() and "landing" not in region_settings.lakefs_names()
    assert config.current().installation("landing").lakefs is None
    assert dict(clients.store_options("landing"))["endpoint"] == "http://s3.landing:9000"
    for client in (clients.lakefs, clients.quick_lakefs, clients.lakefs_certificate):
        with pytest.raises(Invalid, match="the installation 'landing' has no lakeFS"):
            client("landing")


def test_its_keys_travel_sealed_like_others(landing: Installation) -> None:
    own = config.current().installation("landing")
    located = executors.location("s3://raw", "landing", own.store, own.access)
    assert located.access.sealed and "store-of-landing" not in repr(located)
    assert "store-of-landing" not in landing.sealed and landing.secrets() == SECRETS


@pytest.mark.parametrize(
    ("changes", "secrets", "field"),
    [
        ({"store_endpoint": ""}, SECRETS, "store_endpoint"),
        ({"lakefs_access_key_id": "AKIA"}, SECRETS, "lakefs_endpoint"),
        ({}, Secrets("lakefs", "store"), "lakefs_endpoint"),
        ({}, Secrets(), "store_secret_access_key"),
        ({"lakefs_endpoint": "http://lakefs.landing"}, SECRETS, "lakefs_access_key_id"),
        (LAKE, SECRETS, "lakefs_secret_access_key"),
    ],
)
def test_half_a_lakefs_is_none(changes: dict[str, str], secrets: Secrets, field: str) -> None:
    wish = replace(LANDING, served_by="us-east-1", **changes)
    with pytest.raises(Invalid) as caught:
        check_wish(wish)
        check_secrets(wish, secrets, None)
    assert caught.value.field == field


def test_of_aws_the_region_is_enough() -> None:
    check_wish(replace(LANDING, served_by="us-east-1", store_endpoint="", store_region="eu-central-1"))


def test_a_name_of_the_file_is_not_given_again(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    own = replace(config.from_file(), replication_stores={"landing": config.Store("landing", "http://file:9000")})
    monkeypatch.setattr(config, "from_file", lambda: own)
    with pytest.raises(Conflict, match="the configuration file has an installation 'landing' already"):
        installation_create(actor=owner, wish=LANDING, secrets=SECRETS)
    assert installation_reading("landing").in_file


# --- a lakeFS that comes and goes -------------------------------------------------------------------------------------


def test_it_gets_a_lakefs_later_and_its_store_stays(landing: Installation, owner: User) -> None:
    changed(owner, Secrets(lakefs="lakefs-of-landing"), **LAKE)
    own = config.current().installation("landing")
    assert own.lakefs is not None and own.lakefs.keys.secret_access_key.reveal() == "lakefs-of-landing"
    assert own.store.credentials.secret_access_key.reveal() == "store-of-landing"
    assert "landing" in region_settings.lakefs_names()


def test_it_loses_its_lakefs_with_the_secret(landing: Installation, owner: User) -> None:
    changed(owner, Secrets(lakefs="lakefs-of-landing"), **LAKE)
    row = changed(owner)
    assert row.secrets() == SECRETS and "landing" not in region_settings.lakefs_names()
    with pytest.raises(Invalid, match="the secret access key of lakeFS is missing"):
        changed(owner, **LAKE)


def test_a_lakefs_that_is_used_stays(landing: Installation, owner: User, lm: Deployment) -> None:
    changed(owner, Secrets(lakefs="lakefs-of-landing"), **LAKE)
    a_rule(region="landing")
    Repository.objects.update(region="landing")
    with pytest.raises(Conflict) as caught:
        changed(owner)
    assert "is used by 1 mirrored repository" in str(caught.value) and caught.value.field == "lakefs_endpoint"
    Repository.objects.update(region="us-east-1")
    Mirror.objects.update(region="landing")
    with pytest.raises(Conflict, match="is used by 1 mirror"):
        changed(owner)
    Mirror.objects.all().delete()
    changed(owner)
    assert "landing" not in region_settings.lakefs_names()


def test_one_that_has_just_gone_gets_no_mirror(landing: Installation, owner: User, lm: Deployment) -> None:
    """This request still sees what holds at its beginning."""
    changed(owner, Secrets(lakefs="lakefs-of-landing"), **LAKE)
    with transaction.atomic():
        hold_lakefs("landing", "us-east-1")
    wanted = {"source_repository": "lake", "region": "landing", "storage_namespace": "s3://lake-landing/lake"}
    planned = check_creation(actor=owner, name="lake-two", **wanted)
    Installation.objects.update(lakefs_endpoint="")
    with pytest.raises(Conflict, match="has lost its lakeFS"):
        _store(owner, planned)
    Installation.objects.all().delete()
    with pytest.raises(Conflict, match="has just been deleted"), transaction.atomic():
        hold_lakefs("landing")
    assert Mirror.objects.count() == 1


# --- the API ----------------------------------------------------------------------------------------------------------


def test_the_api_adds_shows_and_changes_it(api: Api) -> None:
    status, told = api.call("POST", f"{V1}/installations", BODY)
    assert (status, told["lakefs_endpoint"], told["lakefs_access_key_id"]) == (201, "", ""), told
    assert api.call("GET", f"{V1}/installations/landing")[1]["store_endpoint"] == "http://s3.landing:9000"
    put = {name: value for name, value in BODY.items() if name not in ("region", "store_secret_access_key")}
    status, refused = api.call("PUT", f"{V1}/installations/landing", put)
    assert (status, refused["field"]) == (400, "lakefs_endpoint")
    given = put | {"lakefs_endpoint": "", "lakefs_access_key_id": "", "store_path_style": True}
    assert api.call("PUT", f"{V1}/installations/landing", given)[1]["store_path_style"] is True
    with_lakefs = given | LAKE | {"lakefs_secret_access_key": "lakefs-of-landing"}
    assert api.call("PUT", f"{V1}/installations/landing", with_lakefs)[0] == 200
    assert api.call("PUT", f"{V1}/installations/landing", given)[1]["lakefs_endpoint"] == ""
    assert api.call("DELETE", f"{V1}/installations/landing")[0] == 204


def test_its_policies_have_no_part_for_a_lakefs(api: Api, landing: Installation) -> None:
    assert api.call("GET", f"{V1}/installations/landing/policy")[1]["lakefs"] is None
    a_rule(region="landing", uri="s3://raw")
    told = api.call("GET", f"{V1}/installations/landing/policy")[1]
    assert told["lakefs"] is None and "arn:aws:s3:::raw" in str(told["store"])


# --- the test ---------------------------------------------------------------------------------------------------------


def test_a_test_asks_its_store_alone(api: Api, landing: Installation, lm: Deployment) -> None:
    status, told = api.call("POST", f"{V1}/installations/landing/test", {"namespace": "s3://raw"})
    assert (status, told["ok"], told["lakefs_version"]) == (200, True, None), told
    states = {check["id"]: check["state"] for check in told["checks"]}
    assert states == dict.fromkeys(("database-clock", "store-bucket", "store-versioning", "store-clock"), "ok")
    reading = installation_reading("landing")
    assert reading.outcome == "ok" and reading.last_contact is not None


def test_a_test_needs_an_address(api: Api, olga: Client, landing: Installation, lm: Deployment) -> None:
    status, told = api.call("POST", f"{V1}/installations/landing/test", {})
    assert (status, told["field"]) == (400, "namespace") and "has no lakeFS" in told["message"]
    assert api.call("POST", f"{V1}/installations/landing/test", {"namespace": "raw"})[1]["field"] == "namespace"
    page = olga.post(f"{PAGE}test/", {})
    assert page.status_code == 400 and "has no lakeFS" in text(page)
    assert not InstallationTest.objects.exists()


def test_what_fails_at_its_store_is_told_as_it_is(api: Api, landing: Installation, lm: Deployment) -> None:
    for error in (NotFound("there is no bucket raw"), Unreachable("nobody answers")):
        lm.us_store.down = error
        told = api.call("POST", f"{V1}/installations/landing/test", {"namespace": "s3://raw"})[1]
        assert told["ok"] is False
        assert installation_reading("landing").outcome == "failed"


def test_versions_are_nothing_that_it_lacks(api: Api, landing: Installation, lm: Deployment) -> None:
    with mock.patch.object(lm.us_store, "versioning", return_value="Suspended"):
        told = api.call("POST", f"{V1}/installations/landing/test", {"namespace": "s3://raw"})[1]
    [check] = [check for check in told["checks"] if check["id"] == "store-versioning"]
    assert (check["state"], check["fix"]) == ("ok", "")
    assert check["message"] == "Versioning of raw is not enabled: only rules that copy all versions need it"


def test_a_test_of_another_kind_of_installation_is_not_shown(landing: Installation, lm: Deployment) -> None:
    """One of the file may have lost its lakeFS since, or got one."""
    failed = [{"id": "lakefs-reachable", "state": "failed", "message": "no answer", "fix": ""}]
    found = {"tested_at": clock.now(), "reachable": False, "checks": failed}
    InstallationTest.objects.create(region="landing", **found)
    stored = [{"id": "store-bucket", "state": "ok", "message": "it is there", "fix": ""}]
    InstallationTest.objects.create(region="eu-west-1", **found | {"checks": stored})
    assert installation_reading("landing").test is None and installation_reading("eu-west-1").test is None
    assert not [one for one in observe(clock.now()).troubles if one.region == "landing"]


# --- whether it answers -----------------------------------------------------------------------------------------------


def asked(lm: Deployment, service: Service = Service.STORE) -> Contact:
    contact.look_round()
    row = Contact.objects.get(region="landing", service=service.value)
    lm.run(Duty.objects.get(kind=contact.DUTY, subject=row.pk).pk)
    row.refresh_from_db()
    return row


def test_only_its_store_is_asked_and_only_where_a_rule_is(landing: Installation, lm: Deployment) -> None:
    lm.us_store.down = Unreachable("nobody answers")
    row = asked(lm)
    assert (row.kind, row.answered_at) == ("", None)
    assert set(Contact.objects.filter(region="landing").values_list("service", flat=True)) == {"store"}
    assert installation_reading("landing").last_contact is None
    a_rule(region="landing", uri="s3://raw")
    assert asked(lm).kind == "unreachable"
    lm.us_store.down = None
    answered = asked(lm).answered_at
    assert answered and installation_reading("landing").last_contact == answered


def test_a_lakefs_that_went_is_asked_and_told_no_more(landing: Installation, owner: User, lm: Deployment) -> None:
    changed(owner, Secrets(lakefs="lakefs-of-landing"), **LAKE)
    lm.lakefs("landing").failing["server"] = Unreachable("nobody answers")
    row = asked(lm, Service.LAKEFS)
    Contact.objects.filter(pk=row.pk).update(
        failing_since=clock.now() - timedelta(minutes=1), certificate_read_at=clock.now()
    )
    assert [outage.region for outage in contact.outages()] == ["landing"]
    changed(owner)
    assert contact.outages() == [] and ("landing", Service.LAKEFS) not in contact.certificates()
    assert ("landing", Service.LAKEFS) not in contact.answering(clock.now())
    seen = observe(clock.now())
    assert "region/landing/store" in seen.standings and "region/landing/lakefs" not in seen.standings
    assert not [one for one in seen.troubles if one.region == "landing"]
    assert not any("landing" in gauge.text() for gauge in gauges(owner))
    lm.run(Duty.objects.get(kind=contact.DUTY, subject=row.pk).pk)
    assert not Contact.objects.filter(pk=row.pk).exists()


# --- the pages --------------------------------------------------------------------------------------------------------


def test_one_is_added_by_the_form_and_gets_a_lakefs(olga: Client, lm: Deployment) -> None:
    page = olga.get("/installations/new/").content.decode()
    assert "leave these fields empty" in page
    typed = BODY | {"store_access": "keys", "lakefs_endpoint": "", "lakefs_access_key_id": ""}
    answer = olga.post("/installations/new/", typed, follow=True)
    assert "landing added" in text(answer) and "none: a store for replication rules" in text(answer)
    assert "Version of lakeFS" not in text(answer) and "Access key id at lakeFS" not in text(answer)
    listed = text(olga.get("/installations/"))
    assert "landing database none http://s3.landing:9000" in listed and "None" not in listed
    edit = olga.get(f"{PAGE}edit/").content.decode()
    assert 'name="lakefs_endpoint"' in edit


def test_one_is_tested_before_it_is_added(olga: Client, lm: Deployment) -> None:
    typed = BODY | {"store_access": "keys", "test": "1"}
    assert "has no lakeFS whose repositories" in text(olga.post("/installations/new/", typed))
    shown = text(olga.post("/installations/new/", typed | {"namespace": "s3://raw"}))
    assert "The bucket raw exists and can be listed" in shown and "lakeFS of landing" not in shown
    assert not Installation.objects.exists()


def test_pages_say_neither_good_nor_bad_of_a_lakefs_that_is_not_there(
    olga: Client, landing: Installation, lm: Deployment
) -> None:
    asked(lm)
    for path in (PAGE, "/installations/", "/", "/notifications/", f"{PAGE}delete/"):
        shown = text(olga.get(path, follow=True))
        assert "lakeFS of landing" not in shown, path
    assert asdict(LANDING)["lakefs_endpoint"] == ""
    assert "Its store." in text(olga.get(f"{PAGE}delete/"))
