"""Sessions: new at sign-in, short enough, listed, and ended by who may."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from audit.models import AuditEvent
from rbac import services
from rbac.models import Session, User
from rbac.signin import brute_force, session_store, user_agent
from rbac.signin import sessions as signed_in
from tests.cast import PASSWORD
from tests.documented import answers_as_documented

pytestmark = pytest.mark.django_db

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
COOKIE = "lakemirror_session"


@pytest.fixture(autouse=True)
def documented() -> Iterator[None]:
    """What the API answers is what its document says."""
    with answers_as_documented():
        yield


def browser(name: str = "tom", agent: str = FIREFOX, password: str = PASSWORD, **more: Any) -> Client:
    """A browser in which somebody has signed in."""
    client = Client(headers={"user-agent": agent})
    assert client.post("/login/", {"username": name, "password": password}, **more).status_code == 302
    return client


def is_signed_in(client: Client, **more: Any) -> bool:
    return client.get("/account/sessions/", **more).status_code == 200


def only() -> Session:
    session: Session = Session.objects.get()
    return session


def test_a_planted_session_is_worth_nothing_after_signing_in(teammate: User) -> None:
    planted, client = browser().cookies[COOKIE].value, Client()
    client.cookies[COOKIE] = planted
    client.post("/logout/")
    client.cookies[COOKIE] = planted
    client.post("/login/", {"username": "tom", "password": PASSWORD})
    assert client.cookies[COOKIE].value != planted
    assert Session.objects.count() == 1
    assert session_store.digest(client.cookies[COOKIE].value) == only().pk


def test_the_cookie_is_for_us_alone_and_the_table_opens_nothing(teammate: User) -> None:
    cookie = browser().cookies[COOKIE]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    assert cookie.value not in str(list(Session.objects.values()))
    client = Client()
    client.cookies[COOKIE] = only().pk
    assert not is_signed_in(client)


def test_by_https_cookies_are_secure_and_of_this_host(teammate: User) -> None:
    client = browser(secure=True)
    assert {name for name in client.cookies if not name.startswith("__Host-")} == set()
    cookie = client.cookies[f"__Host-{COOKIE}"]
    assert (cookie["secure"], cookie["httponly"], cookie["path"], cookie["domain"]) == (True, True, "/", "")
    assert is_signed_in(client, secure=True)
    neighbour = Client()
    neighbour.cookies[COOKIE] = cookie.value
    assert not is_signed_in(neighbour, secure=True)
    client.post("/logout/", secure=True)
    assert not is_signed_in(client, secure=True)


def test_the_proxies_that_are_trusted_say_whether_it_is_https(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEMIRROR_TRUSTED_PROXIES", "10.0.0.1, 10.0.0.2")
    assert runpy.run_module("lakemirror_site.gunicorn_settings")["forwarded_allow_ips"] == "127.0.0.1,10.0.0.1,10.0.0.2"


def later(monkeypatch: pytest.MonkeyPatch, **time: float) -> None:
    at = timezone.now() + timedelta(**time)
    monkeypatch.setattr(timezone, "now", lambda: at)


def test_nobody_there_for_a_day_ends_it_and_two_weeks_end_it_anyway(
    teammate: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = browser()
    assert 14 * 86400 - 60 < int(client.cookies[COOKIE]["max-age"]) <= 14 * 86400
    for _ in range(15):
        later(monkeypatch, hours=22.3)
        assert is_signed_in(client)
    later(monkeypatch, hours=2)
    assert not is_signed_in(client)
    another = browser()
    later(monkeypatch, hours=24, seconds=1)
    assert not is_signed_in(another)
    assert session_store.prune() == 2


def test_it_is_seen_once_a_minute_by_what_people_do(
    teammate: User, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    client = browser()
    began = only().seen_at
    later(monkeypatch, seconds=40)
    is_signed_in(client)
    assert only().seen_at == began
    later(monkeypatch, seconds=21)
    client.get("/account/sessions/", headers={"hx-trigger": "live"}, REMOTE_ADDR="192.0.2.9")
    assert only().seen_at == began
    is_signed_in(client, REMOTE_ADDR="192.0.2.9")
    assert (only().seen_at, only().address) == (timezone.now(), "192.0.2.9")
    with django_assert_max_num_queries(4):  # one more where the installations are looked at again
        is_signed_in(client)


def test_ones_own_are_listed_and_ended(teammate: User, owner: User) -> None:
    here, there, third = browser(), browser(agent="curl/8"), browser()
    browser("olga")
    page = here.get("/account/sessions/").content.decode()
    assert page.count("<tr id=") == 3
    assert page.count("this browser") == 1
    assert "Firefox on Linux" in page
    assert "curl/8" in page
    handle = Session.objects.get(browser="curl/8").handle
    assert here.get(f"/account/sessions/{handle}/end/").status_code == 405
    assert here.post(f"/account/sessions/{handle}/end/").status_code == 302
    assert [is_signed_in(one) for one in (here, there, third)] == [True, False, True]
    here.post("/account/sessions/end/")
    assert [is_signed_in(one) for one in (here, third)] == [True, False]
    event = AuditEvent.objects.first()
    assert (event.actor, event.arn, event.before) == ("tom", teammate.arn, {"sessions": 1})
    here.post(f"/account/sessions/{Session.objects.get(user=teammate).handle}/end/")
    assert not is_signed_in(here)
    assert Session.objects.filter(user=owner).count() == 1


def test_those_of_others_need_rights_and_a_handle_is_of_one_user(teammate: User, owner: User, outsider: User) -> None:
    tom, olga, otto = browser(), browser("olga"), browser("otto")
    handle = Session.objects.get(user=owner).handle
    assert tom.post(f"/account/sessions/{handle}/end/").status_code == 404
    for client in (tom, otto):
        assert client.get("/access/users/olga/sessions/").status_code == 403
        assert client.get("/access/users/nobody/sessions/").status_code == 403
        assert client.post("/access/users/olga/sessions/end/").status_code == 403
    assert b"Firefox" in olga.get("/access/users/tom/sessions/").content
    olga.post(f"/access/users/tom/sessions/{Session.objects.get(user=teammate).handle}/end/")
    olga.post("/access/users/otto/sessions/end/")
    assert [is_signed_in(one) for one in (tom, olga, otto)] == [False, True, False]
    for name in ("nobody", "OTTO"):
        assert olga.get(f"/access/users/{name}/sessions/").status_code == 404
        assert olga.post(f"/api/v1/auth/users/{name}/password-reset-link").status_code == 404


def test_the_api_lists_and_ends_them(teammate: User, owner: User) -> None:
    tom, olga = browser(), browser("olga")
    listed = tom.get("/api/v1/auth/users/tom/sessions").json()["results"]
    assert [one["browser"] for one in listed] == ["Firefox on Linux"]
    assert tom.get("/api/v1/auth/users/olga/sessions").status_code == 403
    assert olga.delete(f"/api/v1/auth/users/tom/sessions/{listed[0]['id']}").status_code == 204
    assert not is_signed_in(tom)
    assert olga.delete(f"/api/v1/auth/users/tom/sessions/{listed[0]['id']}").status_code == 404
    assert olga.delete("/api/v1/auth/users/olga/sessions").status_code == 204
    assert not is_signed_in(olga)


def test_disabling_a_user_and_another_password_end_them(teammate: User, owner: User) -> None:
    tom = browser()
    services.user_set_password(actor=owner, user=teammate, password="another long one")
    assert not is_signed_in(tom)
    tom = browser(password="another long one")
    services.user_set_active(actor=owner, user=teammate, active=False)
    assert not Session.objects.exists()
    services.user_set_active(actor=owner, user=teammate, active=True)
    assert not is_signed_in(tom)


def test_what_a_request_writes_into_an_ended_session_is_lost_with_it(teammate: User) -> None:
    store = session_store.SessionStore(browser().cookies[COOKIE].value)
    store["x"] = 1
    signed_in.sessions_end(actor=teammate, user=teammate)
    with pytest.raises(session_store.UpdateError):
        store.save()


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (FIREFOX, "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/120 Safari/537.36 Edg/120", "Edge on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Version/17 Safari/604.1", "Safari on iOS"),
        ("", "unknown"),
    ],
)
def test_a_browser_is_told_in_words(agent: str, words: str) -> None:
    assert user_agent.in_words(agent) == words


# --- passwords --------------------------------------------------------------------------------------------------------

NEW = "a wholly new secret"


def change(client: Client, old: str = PASSWORD, new: str = NEW, again: str = "") -> Any:
    fields = {"old_password": old, "new_password1": new, "new_password2": again or new}
    return client.post("/account/password/", fields)


def test_ones_password_is_changed_by_who_knows_it_and_other_browsers_end(teammate: User) -> None:
    here, there = browser(), browser()
    before = here.cookies[COOKIE].value
    assert change(here).status_code == 302
    assert here.cookies[COOKIE].value != before
    assert [is_signed_in(one) for one in (here, there)] == [True, False]
    browser(password=NEW)
    assert NEW not in str(list(AuditEvent.objects.values()))
    assert Client().get("/account/password/").status_code == 302


def test_a_poor_password_or_a_wrong_old_one_changes_nothing(teammate: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brute_force, "FIRST_WAIT", 30)
    client = browser()
    assert "That is not your password" in change(client, old="wrong").content.decode()
    assert "too short" in change(client, new="short").content.decode()
    assert "too common" in change(client, new="password1").content.decode()
    assert "match" in change(client, again="something else").content.decode()
    assert [change(client, old="wrong").status_code for _ in range(3)] == [200, 429, 429]
    assert change(client).headers["Retry-After"]
    browser()


def link_for(user: User, client: Client) -> str:
    answer = client.post(f"/api/v1/auth/users/{user.username}/password-reset-link")
    assert answer.status_code == 201
    assert answer.headers["Cache-Control"] == "no-store"
    link: str = answer.json()["link"]
    assert link.split("/")[-2] not in str(list(AuditEvent.objects.values()))
    return link.removeprefix("http://testserver")


def follow(link: str) -> tuple[Client, Any]:
    client = Client()
    return client, client.get(link, follow=True)


def set_by(link: str, password: str = NEW) -> Any:
    client, page = follow(link)
    where = page.request["PATH_INFO"]
    assert link.split("/")[-2] not in where or "no longer works" in page.content.decode()
    return client.post(where, {"new_password1": password, "new_password2": password})


def is_good(link: str) -> bool:
    return "no longer works" not in follow(link)[1].content.decode()


def test_a_link_sets_a_password_once(teammate: User, owner: User) -> None:
    olga, tom = browser("olga"), browser()
    link = link_for(teammate, olga)
    assert is_good(link)
    assert "too short" in set_by(link, "short").content.decode()
    assert set_by(link)["Location"] == "/login/"
    assert not is_signed_in(tom)
    assert not is_good(link)
    assert set_by(link, "yet another one").status_code == 200
    browser(password=NEW)
    assert tom.post("/api/v1/auth/users/olga/password-reset-link").status_code in (401, 403)


def test_a_link_ends_with_its_time_with_another_password_and_with_its_user(
    teammate: User, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga = browser("olga")
    link = link_for(teammate, olga)
    services.user_set_password(actor=owner, user=teammate, password="another long one")
    assert not is_good(link)
    assert not is_good(re.sub(r"-reset/[^/]+/", "-reset/OTk5/", link))
    link = link_for(teammate, olga)
    monkeypatch.setattr("django.contrib.auth.tokens.default_token_generator._now", lambda: _days(1.1))
    assert not is_good(link)
    monkeypatch.undo()
    assert is_good(link)
    client, page = follow(link)
    services.user_set_active(actor=owner, user=teammate, active=False)
    answer = client.post(page.request["PATH_INFO"], {"new_password1": NEW, "new_password2": NEW})
    assert "start again" in answer.content.decode()
    assert olga.post("/api/v1/auth/users/tom/password-reset-link").status_code == 409


def _days(days: float) -> datetime:
    return datetime.now() + timedelta(days=days)
