"""Signing in: safe, and slow for whoever guesses, without a way to keep others out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone

from core.errors import Denied, NotSignedIn
from rbac import services
from rbac.models import User
from rbac.signin import brute_force
from rbac.signin.views import permission_required
from tests.cast import PASSWORD, person


@pytest.fixture(autouse=True)
def long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brute_force, "FIRST_WAIT", 30)


def sign_in(
    client: Client, name: str = "olga", password: str = PASSWORD, address: str = "192.0.2.1", **more: Any
) -> Any:
    return client.post("/login/", {"username": name, "password": password, **more}, REMOTE_ADDR=address)


def test_the_right_password_signs_in_whatever_the_names_case(client: Client, owner: User) -> None:
    assert sign_in(client, "Olga").status_code == 302
    assert client.session["_auth_user_id"] == str(owner.pk)


def test_every_failure_says_the_same(client: Client, owner: User, outsider: User) -> None:
    services.user_set_active(actor=owner, user=outsider, active=False)
    for name, password in (
        ("olga", "wrong"),
        ("nobody", PASSWORD),
        ("otto", PASSWORD),
        ("ol\x00ga", "x"),
        ("ölga", "x"),
    ):
        response = sign_in(client, name, password)
        assert response.status_code == 200
        assert "_auth_user_id" not in client.session
    assert response.context["form"].non_field_errors() == ["Wrong name or password."]


def test_signing_in_changes_the_session_id(client: Client, owner: User) -> None:
    client.get("/login/")
    session = client.session
    session["planted"] = 1
    session.save()
    planted = session.session_key
    client.cookies["lakemirror_session"] = planted
    sign_in(client)
    assert client.cookies["lakemirror_session"].value != planted


@pytest.mark.parametrize("where", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"])
def test_next_leads_only_to_our_own_pages(client: Client, owner: User, where: str) -> None:
    assert sign_in(client, next=where)["Location"] == "/"


def test_next_leads_back(client: Client, owner: User) -> None:
    assert sign_in(client, next="/mirrors/lake-eu/?tab=1")["Location"] == "/mirrors/lake-eu/?tab=1"


def test_without_the_forms_token_nothing_happens(owner: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    assert sign_in(strict).status_code == 403
    assert "_auth_user_id" not in strict.session


def test_signing_out_needs_a_post_and_ends_the_session(client: Client, owner: User) -> None:
    sign_in(client)
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").status_code == 302
    assert "_auth_user_id" not in client.session


def test_a_disabled_users_session_ends_at_once(client: Client, owner: User) -> None:
    person("ada", "Admins")
    sign_in(client)
    services.user_set_active(actor="system:tests", user=owner, active=False)
    assert not client.get("/login/").context["user"].is_authenticated


def guess(times: int, address: str = "192.0.2.1", name: str = "olga") -> list[int]:
    return [sign_in(Client(), name, "wrong", address).status_code for _ in range(times)]


def test_guessing_has_to_wait_after_some_attempts(owner: User) -> None:
    assert guess(8) == [200] * 5 + [429] * 3
    response = sign_in(Client(), password="wrong")
    assert 1 <= int(response["Retry-After"]) <= 30
    assert "Too many attempts" in response.content.decode()


class Clock:
    """The time, as this test tells it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = timezone.now()
        monkeypatch.setattr(timezone, "now", lambda: self.at)

    def pass_(self, seconds: float) -> datetime:
        self.at += timedelta(seconds=seconds)
        return self.at


def test_pauses_double_up_to_a_minute_and_are_forgotten(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    monkeypatch.setattr(brute_force, "FIRST_WAIT", 1)
    clock, where, pauses = Clock(monkeypatch), "x", []
    for _ in range(14):
        assert brute_force.begin_attempt(where) == 0
        pauses.append(brute_force.wait_of(where))
        clock.pass_(pauses[-1])
    assert pauses == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    clock.pass_(15 * 60)
    assert [brute_force.begin_attempt(where) for _ in range(6)] == [0, 0, 0, 0, 0, 1]
    clock.pass_(15 * 60)
    assert brute_force.prune() == 1


def test_while_waiting_even_the_right_password_is_not_looked_at(client: Client, owner: User) -> None:
    guess(6)
    assert sign_in(client).status_code == 429
    assert "_auth_user_id" not in client.session


def test_other_spellings_of_a_name_are_no_other_attempts(owner: User) -> None:
    spellings = ["olga", "OLGA", " olga ", "ｏｌｇａ", "Olga", "olga", "oLga"]
    assert [guess(1, name=name)[0] for name in spellings][-1] == 429


def test_guessing_keeps_nobody_out_elsewhere(client: Client, owner: User) -> None:
    guess(20, address="198.51.100.9")
    assert sign_in(client, address="192.0.2.1").status_code == 302


def test_guessing_from_the_same_address_keeps_no_known_browser_out(client: Client, owner: User) -> None:
    sign_in(client)
    client.post("/logout/")
    guess(20)
    assert sign_in(client).status_code == 302


def test_a_browser_known_for_one_name_is_a_stranger_to_another(client: Client, owner: User, outsider: User) -> None:
    sign_in(client, "otto")
    client.post("/logout/")
    guess(6)
    assert sign_in(client, "olga", "wrong").status_code == 429


def test_a_forged_mark_of_a_known_browser_is_none(owner: User) -> None:
    guess(6)
    client = Client()
    client.cookies[brute_force.COOKIE] = "olga:1:forged"
    assert sign_in(client).status_code == 429


def test_success_forgets_the_failures(client: Client, owner: User) -> None:
    guess(4)
    sign_in(client)
    assert guess(5) == [200] * 5


def test_neighbours_in_an_ipv6_network_count_as_one(owner: User) -> None:
    assert [guess(1, address=f"2001:db8::{number}")[0] for number in range(1, 8)][-1] == 429


def test_of_many_guesses_at_once_past_the_free_ones_one_gets_the_turn(owner: User) -> None:
    request = RequestFactory().post("/login/", REMOTE_ADDR="192.0.2.1")
    where = brute_force.place(request, "olga")
    guess(4)
    assert [brute_force.begin_attempt(where) > 0 for _ in range(4)] == [False, True, True, True]


# --- the guard of pages -----------------------------------------------------------------------------------------------


@permission_required("fs:ReadRepository", "arn:lakefs:fs:::repository/{name}")
def page(request: HttpRequest, name: str) -> HttpResponse:
    """A page about a repository."""
    return HttpResponse(name)


def ask(user: Any) -> HttpRequest:
    request = RequestFactory().get("/lake/")
    request.user = user
    return request


def test_a_guarded_view_runs_for_who_may(teammate: User) -> None:
    assert page(ask(teammate), name="lake").content == b"lake"
    assert page.__doc__ == "A page about a repository."


def test_a_guarded_view_names_action_and_arn_to_who_may_not(outsider: User) -> None:
    with pytest.raises(Denied) as caught:
        page(ask(outsider), name="lake")
    assert caught.value.arn == "arn:lakefs:fs:::repository/lake"


def test_a_guarded_view_asks_strangers_to_sign_in() -> None:
    with pytest.raises(NotSignedIn):
        page(ask(None), name="lake")


def test_the_arn_may_be_computed(outsider: User) -> None:
    guard = permission_required("fs:ReadRepository", lambda name: f"arn:lakefs:fs:::repository/{name}-eu")
    with pytest.raises(Denied, match="lake-eu"):
        guard(lambda request, name: HttpResponse())(ask(outsider), name="lake")
