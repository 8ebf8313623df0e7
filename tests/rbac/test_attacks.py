"""Attacks on access that other tests don't try."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from django.core.checks import Tags, run_checks
from django.test import Client, override_settings

from lakemirror_site.health import PROBE_HOST
from rbac import key_secrets, services
from rbac.models import AccessKey, User
from tests.api import Api
from tests.cast import PASSWORD, person

pytestmark = pytest.mark.django_db
AUTH = "/api/v1/auth"
STATEMENT = [{"effect": "allow", "action": ["fs:ReadObject"], "resource": "*"}]


def browser(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def test_a_body_sets_nothing_that_it_is_not_asked_for(admin: Api) -> None:
    person("thea")
    for extra in ({"is_superuser": True}, {"is_staff": True}, {"user_id": 1}, {"pk": 1}, {"created_at": "2020-01-01"}):
        assert admin.call("POST", f"{AUTH}/users", {"id": "una"} | extra)[0] == 400
        assert admin.call("PATCH", f"{AUTH}/users/thea", extra)[0] == 400
        assert admin.call("POST", f"{AUTH}/users/thea/credentials", extra)[0] == 400
        assert admin.call("POST", f"{AUTH}/groups", {"id": "Una"} | extra)[0] == 400
        assert admin.call("POST", f"{AUTH}/policies", {"id": "Una", "statement": STATEMENT} | extra)[0] == 400
    assert not User.objects.filter(username="una").exists()


def test_another_users_key_is_not_reached_by_ones_own_name(viewer: Api, teammate: User) -> None:
    theirs = services.key_create(actor="system:tests", user=person("thea")).key
    path = f"{AUTH}/users/tom/credentials/{theirs.key_id}"
    tries = [("GET", path), ("DELETE", path), ("POST", f"{path}/disable"), ("POST", f"{path}/rotate")]
    assert [viewer.call(*one)[0] for one in tries] == [404] * 4
    page = browser(teammate)
    for verb in ("disable", "delete", "rotate"):
        page.post(f"/access/users/tom/keys/{theirs.key_id}/{verb}/")
    assert AccessKey.objects.filter(pk=theirs.pk, disabled_at=None).exists()


def test_every_form_needs_its_token_by_page_and_by_api(owner: User) -> None:
    strange = browser(owner, enforce_csrf_checks=True)
    posts = ["/access/new-user/", "/access/users/olga/disable/", "/access/users/olga/new-key/", "/mirrors/new/"]
    posts += ["/exports/new/", "/installations/new/", "/account/password/", "/account/sessions/end/", "/logout/"]
    for address in posts:
        assert strange.post(address).status_code == 403, address
    body = json.dumps({"id": "una"})
    assert strange.post(f"{AUTH}/users", body, content_type="application/json").status_code == 403


def test_pages_are_framed_by_nobody_and_kept_by_nobody(owner: User) -> None:
    page = browser(owner)
    kept = []
    for address in ("/", "/mirrors/", "/exports/", "/audit/", "/access/users/", "/account/sessions/", "/docs/api"):
        answer = page.get(address)
        assert answer["X-Frame-Options"] == "DENY" and answer["X-Content-Type-Options"] == "nosniff"
        policy = answer["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert "camera=()" in answer["Permissions-Policy"]
        kept += [address] if "no-store" not in answer.get("Cache-Control", "") else []
    assert kept == []


@pytest.mark.django_db
def test_only_names_that_are_configured_are_answered_but_probes_come_by_any(client: Client, settings: Any) -> None:
    settings.ALLOWED_HOSTS = [PROBE_HOST, "lakemirror.example.com"]
    assert client.get("/login/", headers={"Host": "lakemirror.example.com"}).status_code == 200
    refused = client.get("/login/", headers={"Host": "evil.example"})
    assert refused.status_code == 400 and "evil.example" not in refused.content.decode()
    for probe, status in (("/healthz", 200), ("/readyz", 200), ("/metrics", 401)):
        assert client.get(probe, headers={"Host": "10.0.0.7:8008"}).status_code == status


def test_names_lead_out_of_no_address_and_into_no_header(admin: Api, owner: User) -> None:
    for name in ("../olga", "a/b", "a\r\nX: y", "a\nb", "..", "-a", "a b", "‮a"):
        assert admin.call("POST", f"{AUTH}/users", {"id": name})[0] == 400, name
        assert admin.call("POST", f"{AUTH}/groups", {"id": name})[0] == 400, name
    answer = browser(owner).get("/mirrors/", headers={"X-Request-ID": "a\r\nSet-Cookie: b=c"})
    assert "Set-Cookie" not in answer.headers.get("X-Request-ID", "")


def test_a_body_that_is_too_large_is_not_read(admin: Api, owner: User) -> None:
    assert admin.call("POST", f"{AUTH}/users", b'{"id": "' + b"x" * 1_000_001 + b'"}')[0] == 413
    assert browser(owner).post("/access/new-user/", {"username": "x" * 1_000_001}).status_code == 413


def test_a_wrong_id_costs_the_work_of_a_wrong_secret(teammate: User, monkeypatch: pytest.MonkeyPatch) -> None:
    key, compared = services.key_create(actor="system:tests", user=teammate).key, []
    real = key_secrets.matches
    monkeypatch.setattr(key_secrets, "matches", lambda *both: compared.append(1) or real(*both))
    for key_id in (key.key_id, "AKIAWRONGWRONGWRONG2"):
        assert services.key_check(key_id=key_id, secret="not the secret of it") is None
    assert len(compared) == 2


def test_back_and_next_lead_only_to_our_own_pages(owner: User) -> None:
    for where in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"):
        answer = Client().post("/login/", {"username": "olga", "password": PASSWORD, "next": where})
        assert answer.status_code == 302 and "evil" not in answer["Location"] and "javascript" not in answer["Location"]


@override_settings(SECRET_KEY=string.ascii_letters)
def test_djangos_own_list_for_deployments_has_nothing_but_what_the_proxy_decides() -> None:
    """HTTPS and HSTS are the reverse proxy's, and cookies become Secure by the request: `rbac/signin/cookies.py`."""
    found = run_checks(tags=[Tags.security], include_deployment_checks=True)
    assert {one.id for one in found} == {"security.W004", "security.W008", "security.W016"}
