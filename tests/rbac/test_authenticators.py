"""Who is asked whose key it is, and what becomes of their answers; how often a key may ask."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.errors import Unreachable
from rbac import services
from rbac.keys import authenticators, rate_limit
from rbac.keys.authenticators import No
from rbac.models import Guesses, User
from rbac.signin import brute_force
from tests.cast import person
from tests.documented import answers_as_documented
from tests.rbac.elsewhere import SECRET, Elsewhere, Tell, ask

pytestmark = pytest.mark.django_db

MAY_SEE = [{"effect": "allow", "action": ["fs:ListRepositories"], "resource": "*"}]


@pytest.fixture(autouse=True)
def documented() -> Iterator[None]:
    """What the API answers is what its document says."""
    with answers_as_documented():
        yield


def says(there: Elsewhere, name: str = "ann", secret: str = SECRET, statement: Any = MAY_SEE) -> None:
    """The service knows the key KEYOFANN, whose user has one policy."""
    there.answers["/api/v1/auth/credentials/KEYOFANN"] = (
        200,
        {
            "access_key_id": "KEYOFANN",
            "secret_access_key": secret,
            "creation_date": 1,
            "user_id": 7,
            "user_name": name,
        },
    )
    policies = [{"name": "p", "creation_date": 1, "statement": statement, "acl": ""}]
    there.answers[f"/api/v1/auth/users/{name}/policies"] = (
        200,
        {
            "pagination": {"has_more": False, "next_offset": "", "results": 1, "max_per_page": 0},
            "results": policies,
        },
    )


# --- the authorization service ----------------------------------------------------------------------------------------


def test_a_user_of_the_service_may_do_what_it_says(there: Elsewhere, tell: Tell) -> None:
    tell(api={"endpoint": f"{there.url}/api/v1", "token": "tok"})
    says(there)
    assert ask("KEYOFANN").status_code == 200
    assert there.asked[0] == ("/api/v1/auth/credentials/KEYOFANN", "Bearer tok")
    assert "effective=true" in there.asked[1][0]
    assert ask("KEYOFANN", path="/api/v1/auth/users/tom/sessions").status_code == 403
    user = User.objects.get(username="ann")
    assert not user.has_usable_password()
    assert AuditEvent.objects.get(arn=user.arn).actor == "system:authorization-service"
    services.policy_attach(
        actor="system:tests",
        policy=services.policy_put(
            actor="system:tests",
            document={"id": "all", "statement": [{"effect": "allow", "action": ["auth:*"], "resource": "*"}]},
        ),
        user=user,
    )
    assert ask("KEYOFANN", path="/api/v1/auth/users/tom/sessions").status_code == 403
    services.user_set_active(actor="system:tests", user=user, active=False)
    assert ask("KEYOFANN").status_code == 401


def test_a_wrong_secret_an_unknown_key_and_a_strange_policy_open_nothing(there: Elsewhere, tell: Tell) -> None:
    tell(api={"endpoint": f"{there.url}/api/v1"})
    says(there)
    assert ask("KEYOFANN", "wrong").status_code == 401
    assert ask("NOBODYSKEY").status_code == 401
    says(there, statement=[*MAY_SEE, {"effect": "deny", "action": ["?"], "resource": "*", "condition": {}}])
    assert ask("KEYOFANN").status_code == 403
    says(there, name="no name: of ours")
    there.answers["/api/v1/auth/users/no%20name%3A%20of%20ours/policies"] = 200, {"results": []}
    assert "not a valid user name here" in ask("KEYOFANN").json()["message"]
    says(there, name="Ann")
    assert "in different letter case" in ask("KEYOFANN").json()["message"]


@pytest.mark.parametrize("answer", [(500, {}), (401, {}), (302, {}), (200, None), (200, []), (200, {"user_name": "x"})])
def test_a_service_that_gives_no_clear_answer_lets_nobody_in(there: Elsewhere, tell: Tell, answer: Any) -> None:
    tell(api={"endpoint": f"{there.url}/api/v1"})
    there.answers["/api/v1/auth/credentials/KEYOFANN"] = answer
    refused = ask("KEYOFANN")
    assert refused.status_code == 503
    assert "the authorization service at" in refused.json()["message"]
    assert not Guesses.objects.exists()


def test_while_the_service_is_down_our_own_keys_go_on(tell: Tell, owner: User) -> None:
    tell(api={"endpoint": "http://127.0.0.1:9/api/v1"})
    own = services.key_create(actor=owner, user=owner)
    assert ask(own.key.key_id, own.secret).status_code == 200
    assert ask(own.key.key_id, "wrong").status_code == 401
    assert ask("KEYOFANN").status_code == 503
    basic = base64.b64encode(f"KEYOFANN:{SECRET}".encode()).decode()
    headers = {"authorization": f"Basic {basic}", "idempotency-key": "once"}
    assert Client().post("/api/v1/auth/users/tom/password-reset-link", headers=headers).status_code == 503


def test_a_page_of_policies_is_followed_by_the_next(there: Elsewhere, tell: Tell) -> None:
    tell(api={"endpoint": f"{there.url}/api/v1"})
    says(there)

    def policies(request: BaseHTTPRequestHandler) -> tuple[int, Any]:
        second = "after=p1" in request.path
        statement = [{"effect": "deny", "action": ["fs:*"], "resource": "*"}] if second else MAY_SEE
        more = {"has_more": not second, "next_offset": "p1"}
        return 200, {"pagination": more, "results": [{"name": "p", "statement": statement}]}

    there.answers["/api/v1/auth/users/ann/policies"] = policies  # type: ignore[assignment]
    assert ask("KEYOFANN").status_code == 403


def test_what_the_service_said_is_reused_as_the_cache_says(there: Elsewhere, tell: Tell) -> None:
    for enabled, calls in ((False, 4), (True, 2)):
        tell(
            api={"endpoint": f"{there.url}/api/v1"},
            cache={"enabled": enabled},
        )
        says(there)
        there.asked.clear()
        assert [ask("KEYOFANN").status_code for _ in range(2)] == [200, 200]
        assert len(there.asked) == calls
    says(there, secret="another secret by now")
    assert ask("KEYOFANN", "another secret by now").status_code == 200
    assert ask("KEYOFANN").status_code == 401


# --- the order -------------------------------------------------------------------------------------------------------


def test_the_order_is_the_one_that_is_configured_and_who_knows_the_id_decides(
    tell: Tell, monkeypatch: pytest.MonkeyPatch, owner: User
) -> None:
    tell(authenticators=["lakefs", "api", "keys"], api={"endpoint": "http://127.0.0.1:9"})
    kinds = [type(one).__name__ for one in authenticators.configured()]
    assert kinds == ["LakeFSKeys", "AuthorizationService", "OwnKeys"]

    class Says:
        def __init__(self, answer: Any) -> None:
            self.answer = answer

        def user_of(self, key_id: str, secret: str) -> Any:
            if self.answer is Unreachable:
                raise Unreachable("down")
            return self.answer

    for answers, expected in (
        ([No.UNKNOWN, owner], owner),
        ([No.WRONG, owner], None),
        ([owner, Unreachable], owner),
        ([No.UNKNOWN], None),
    ):
        monkeypatch.setattr(authenticators, "configured", lambda some=answers: [Says(one) for one in some])
        assert authenticators.user_of("K", "s") == expected
    monkeypatch.setattr(authenticators, "configured", lambda: [Says(Unreachable), Says(owner)])
    with pytest.raises(Unreachable):
        authenticators.user_of("K", "s")


# --- guessing secrets, and asking too often ---------------------------------------------------------------------------


def test_who_guesses_a_secret_has_to_wait_and_keeps_nobody_out(
    tell: Tell, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brute_force, "FIRST_WAIT", 30)
    tell()
    own = services.key_create(actor=owner, user=owner)
    used = services.key_create(actor=owner, user=owner)
    key_id = own.key.key_id
    assert ask(used.key.key_id, used.secret).status_code == 200
    assert [ask(key_id, "wrong").status_code for _ in range(7)] == [401] * 5 + [429] * 2
    refused = ask(key_id, own.secret)
    assert refused.status_code == 429
    assert 15 <= int(refused.headers["Retry-After"]) <= 30
    assert f"try again in {refused.headers['Retry-After']} s" in refused.json()["message"]
    assert ask(key_id, own.secret, REMOTE_ADDR="192.0.2.7").status_code == 200
    for _ in range(7):
        ask(used.key.key_id, "wrong")
    assert ask(used.key.key_id, used.secret).status_code == 200


def test_a_repeatable_call_counts_once(tell: Tell, owner: User) -> None:
    tell(rate_limit={"requests_per_second": 1, "burst": 1})
    own = services.key_create(actor=owner, user=owner)
    basic = base64.b64encode(f"{own.key.key_id}:{own.secret}".encode()).decode()
    headers = {"authorization": f"Basic {basic}", "idempotency-key": "once"}
    person("tim")
    assert Client().post("/api/v1/auth/users/tim/password-reset-link", headers=headers).status_code == 201


def test_a_key_gets_its_burst_then_its_pace(tell: Tell, owner: User) -> None:
    tell(rate_limit={"requests_per_second": 2, "burst": 3})
    now = [0.0]
    buckets = rate_limit.Buckets(per_second=2, burst=3, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("b") == 0
    now[0] = 0.5
    assert [buckets.take("a") for _ in range(2)] == [0, 0.5]
    now[0] = 100
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    shared = rate_limit.shared()
    assert shared is not None
    shared._clock = lambda: 0.0
    own = services.key_create(actor=owner, user=owner)
    found = [ask(own.key.key_id, own.secret, "/service/replication/v1/jobs/nix") for _ in range(4)]
    assert [one.status_code for one in found] == [404, 404, 404, 429]
    assert found[-1].headers["Retry-After"] == "1"
    assert "too many requests" in found[-1].json()["message"]
    tell(rate_limit={"requests_per_second": 0})
    assert rate_limit.shared() is None
