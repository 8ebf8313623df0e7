"""A session that ends in the middle of a form: what was typed comes back after signing in, without any script."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from django.test import Client

from mirrors.models import Mirror
from mirrors.services import settings
from rbac.models import User
from rbac.signin import form_recovery
from tests.cast import PASSWORD
from tests.mirrors.factories import make_company
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db(transaction=True)

NEW = "/mirrors/new/"
SETTINGS = "/mirrors/analytics-eu/settings/"
TYPED = {
    "source_repository": "lake",
    "source_region": "us-east-1",
    "name": "lake-eu",
    "region": "eu-west-1",
    "storage_namespace": "s3://dst/lake",
    "include": "release-*\r\nhotfix",
    "exclude": "",
    "tags": "on",
}
KEPT = "What you typed before you signed in has been restored"


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


def fields(answer: Any) -> dict[str, str]:
    """What a form on the page would send, if nobody touched it."""
    page = answer.content.decode()
    found = dict(re.findall(r'<input type="(?:text|number|hidden)" name="(\w+)" value="([^"]*)"', page))
    areas = dict(re.findall(r'<textarea name="(\w+)"[^>]*>\n?([^<]*)</textarea>', page))
    return {name: value.replace("&quot;", '"') for name, value in (found | areas).items()}


def sign_in(client: Client, answer: Any, password: str = PASSWORD) -> Any:
    """By the page that came instead of the form's answer."""
    return client.post("/login/", {**fields(answer), "username": "olga", "password": password})


def test_a_new_mirror_that_was_typed_comes_back_once(client: Client, owner: User, lm: Deployment) -> None:
    Mirror.objects.all().delete()
    refused = client.post(NEW, TYPED)
    assert refused.status_code == 401
    assert "what you typed is kept" in text(refused)
    refused = sign_in(client, refused, "wrong")
    signed_in = sign_in(client, refused)
    assert signed_in["Location"] == NEW
    page = client.get(NEW)
    assert KEPT in text(page)
    there = fields(page)
    assert {name: there[name] for name in ("name", "source_repository", "storage_namespace", "include")} == {
        "name": "lake-eu",
        "source_repository": "lake",
        "storage_namespace": "s3://dst/lake",
        "include": "release-*\r\nhotfix",
    }
    assert re.search(r'name="tags"[^>]* checked', page.content.decode())
    assert not Mirror.objects.exists()
    assert KEPT not in text(client.get(NEW))


def test_settings_that_were_typed_come_back_over_what_others_chose(client: Client, owner: User, company: Any) -> None:
    client.force_login(owner)
    given = fields(client.get(SETTINGS)) | {"exclude": "tmp-*", "depth": "etag", "imported": "block"}
    given |= {"repair_tampering": "report", "first_sync": "exact"}
    client.logout()
    refused = client.post(SETTINGS, given)
    settings.mirror_update(actor=owner, mirror=company["analytics-eu"], changes={"rpo_seconds": 60})
    assert sign_in(client, refused)["Location"] == SETTINGS
    page = client.get(SETTINGS)
    assert KEPT in text(page)
    assert "Lag target, in seconds: none → 60" in text(page)
    assert (fields(page)["exclude"], fields(page)["rpo_seconds"]) == ("tmp-*", "60")
    assert Mirror.objects.get(name="analytics-eu").selected["exclude"] == []


def test_an_action_leads_back_to_its_page_and_is_not_done(client: Client, owner: User, company: Any) -> None:
    page = "http://testserver/mirrors/models-eu/?find=x"
    answer = client.post("/mirrors/models-eu/pause/", headers={"Referer": page})
    assert answer["Location"] == "/login/?next=/mirrors/models-eu/%3Ffind%3Dx"
    for referer in ("", "https://elsewhere.example/mirrors/"):
        answer = client.post("/mirrors/models-eu/pause/", headers={"Referer": referer})
        assert answer["Location"] == "/login/?next=/"
    assert not Mirror.objects.filter(name="models-eu", paused=True).exists()


@pytest.mark.parametrize("signed_in", [True, False])
def test_a_form_whose_token_is_too_old_loses_nothing(owner: User, company: Any, signed_in: bool) -> None:
    client = Client(enforce_csrf_checks=True)
    if signed_in:
        client.force_login(owner)
    client.get("/login/")
    answer = client.post(NEW, TYPED, headers={"Origin": "http://testserver"})
    assert answer.status_code == (302 if signed_in else 401)
    if signed_in:
        assert answer["Location"] == NEW
        assert KEPT in text(client.get(NEW))


@pytest.mark.parametrize("origin", ["", "null", "http://elsewhere.example"])
def test_nobody_else_fills_in_peoples_forms(owner: User, company: Any, origin: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    assert client.post(NEW, TYPED, headers={"Origin": origin} if origin else {}).status_code == 403
    assert KEPT not in text(client.get(NEW))


def test_who_has_signed_in_elsewhere_goes_on_with_what_was_typed(client: Client, owner: User, company: Any) -> None:
    refused = client.post(NEW, TYPED)
    client.force_login(owner)
    assert sign_in(client, refused)["Location"] == NEW
    assert KEPT in text(client.get(NEW))


def test_a_seal_that_is_not_ours_or_too_old_holds_nothing(
    client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = client.post(NEW, TYPED)
    sealed = fields(refused)["typed"]
    for wrong in ("", "x", "{}", sealed[:-1], sealed + "x"):
        client.post("/login/", {"username": "olga", "password": PASSWORD, "next": NEW, "typed": wrong})
        assert KEPT not in text(client.get(NEW))
        client.logout()
    monkeypatch.setattr(time, "time", lambda real=time.time: real() + 3601)
    sign_in(client, refused)
    assert form_recovery.FIELD not in client.session


def test_what_was_typed_is_for_its_own_form_alone(client: Client, owner: User, company: Any) -> None:
    refused = client.post(SETTINGS, {"exclude": "tmp-*"})
    sign_in(client, refused)
    assert KEPT not in text(client.get("/mirrors/models-eu/settings/"))
    assert KEPT in text(client.get(SETTINGS))
