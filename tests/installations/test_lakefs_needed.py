"""All that needs a lakeFS refuses an installation that has none, and says so; nothing offers it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from core.errors import Invalid
from core.installations.settings import Secrets, Wish
from deployment import config
from exports.models import Export
from exports.services.destinations import check_region, repositories_near
from installations.services import installation_create
from mirrors.models import Mirror
from mirrors.services.webhook_file import hold_file, webhook_file
from mirrors.views.forms import MirrorForm
from rbac.models import User
from tests.api import Api
from tests.mirrors.harness import Deployment, forget_installations

V1 = "/service/replication/v1"
pytestmark = pytest.mark.django_db

SAYS = "the installation 'landing' has no lakeFS"
PLACE = "s3://lake-landing/lake"
EXPORT = {"exportPath": "s3://out/lake", "exportStatusPath": ""}


@pytest.fixture(autouse=True)
def landing(owner: User) -> Iterator[None]:
    """A store without a lakeFS, at the very endpoint of eu-west-1's."""
    forget_installations()
    endpoint = config.current().store("eu-west-1").endpoint
    wish = Wish("landing", store_endpoint=endpoint, store_access_key_id="AKIALAND")
    installation_create(actor=owner, wish=wish, secrets=Secrets(store="store-of-landing"))
    yield
    forget_installations()


def mirror(**more: Any) -> dict[str, Any]:
    return {"name": "lake-two", "region": "eu-west-1", "storage_namespace": PLACE} | more


MIRRORS = "/repositories/lake/mirrors"
BRANCH = "/api/v1/repositories/lake/branches/main"


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", MIRRORS, mirror(region="landing"), "region"),
        ("POST", MIRRORS, mirror(source_region="landing"), "source_region"),
        ("POST", f"{MIRRORS}?source_region=landing", mirror(), "source_region"),
        ("GET", f"{MIRRORS}?source_region=landing", None, "source_region"),
        ("GET", f"{MIRRORS}/lake-two/policy?region=landing&storage_namespace={PLACE}", None, "region"),
        ("GET", "/repositories/lake/objects/locate?ref=main&path=a&prefer=landing", None, "prefer"),
        ("PUT", f"{BRANCH}/continuous-export?region=landing", EXPORT, "region"),
        ("GET", f"{BRANCH}/continuous-export?region=landing", None, "region"),
        ("POST", f"{BRANCH}/export-check?region=landing", EXPORT, "region"),
    ],
)
def test_the_api_refuses_it(
    api: Api, lm: Deployment, head: str, method: str, path: str, body: dict[str, Any] | None, field: str
) -> None:
    status, told = api.call(method, path if path.startswith("/api/") else V1 + path, body)
    assert (status, told.get("field")) == (400, field), told
    assert SAYS in told["message"]
    assert Mirror.objects.count() == 1 and not Export.objects.exists()


def test_a_preflight_says_it(api: Api, lm: Deployment, head: str) -> None:
    for given in (mirror(region="landing"), mirror(source_region="landing")):
        status, told = api.call("POST", f"{V1}{MIRRORS}/preflight", given)
        said = json.dumps(told)
        assert SAYS in said and (status == 400 or told["ok"] is False), said


@pytest.mark.parametrize("hook", ["lakefs", "hold"])
def test_hooks_of_a_lakefs_are_refused_and_a_stores_events_are_not(lm: Deployment, hook: str) -> None:
    bearer = {"Authorization": f"Bearer {config.current().hook_secret('landing')}"}
    body = {"repository_id": "lake", "event_type": "pre-merge"}
    answer = Client().post(f"/hooks/{hook}/landing", body, content_type="application/json", headers=bearer)
    assert answer.status_code == 400 and SAYS in answer.json()["message"]
    event = {
        "Records": [{"eventName": "s3:ObjectCreated:Put", "s3": {"bucket": {"name": "b"}, "object": {"key": "k"}}}]
    }
    told = Client().post("/hooks/s3/landing", event, content_type="application/json", headers=bearer)
    assert told.status_code == 202


def test_files_for_its_repositories_are_not_made() -> None:
    with pytest.raises(Invalid, match=SAYS):
        webhook_file("landing", "https://lm.example.com")
    with pytest.raises(Invalid, match=SAYS):
        hold_file("landing", "https://lm.example.com", branches=["main"])
    with pytest.raises(CommandError, match=SAYS):
        call_command("webhook", "landing", "https://lm.example.com")


def test_what_is_lost_is_not_looked_for_there(lm: Deployment, head: str) -> None:
    call_command("rebuild", "--from-destination", "--dry-run")
    with pytest.raises(CommandError, match=SAYS):
        call_command("rebuild", "--from-destination", "--dry-run", "--region", "landing")


def test_exports_have_no_source_there_and_ask_it_for_no_repositories(lm: Deployment) -> None:
    with pytest.raises(Invalid, match=SAYS):
        check_region("landing")
    assert all("landing" not in taken.whose for taken in repositories_near("eu-west-1", "s3://out/lake"))


def test_no_form_offers_it_but_that_of_rules(olga: Client, lm: Deployment) -> None:
    assert "landing" not in [str(name) for name, _ in MirrorForm.fresh().fields["region"].choices]
    for path in ("/mirrors/new/", "/exports/new/"):
        assert "landing" not in olga.get(path).content.decode(), path
    page = olga.get("/replication/new/").content.decode()
    assert page.count('<option value="landing"') == 2


def test_a_form_that_names_it_is_refused(olga: Client, lm: Deployment, head: str) -> None:
    typed = mirror(region="landing", source_repository="lake", source_region="us-east-1")
    assert olga.post("/mirrors/new/", typed).status_code == 400
    assert Mirror.objects.count() == 1
