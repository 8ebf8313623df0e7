"""Access keys: shown once, kept as a hash, useless when they should be."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import pytest
from django.test import RequestFactory
from django.utils import timezone
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from audit.models import AuditEvent
from core.errors import Conflict, Invalid
from rbac import services
from rbac.key_secrets import IssuedKey
from rbac.keys.authentication import AccessKeyAuthentication
from rbac.models import AccessKey, User
from web import requests


@pytest.fixture
def issued(teammate: User) -> IssuedKey:
    return services.key_create(actor=teammate, user=teammate, description="laptop")


def check(issued: IssuedKey, **changes: Any) -> AccessKey | None:
    return services.key_check(**({"key_id": issued.key.key_id, "secret": issued.secret} | changes))


def test_a_new_key_opens(issued: IssuedKey, teammate: User) -> None:
    found = check(issued)
    assert found is not None
    assert found.user == teammate
    assert issued.key.key_id.startswith("AKIA")
    assert len(issued.key.key_id) == 20


def test_the_secret_is_nowhere_but_in_the_answer(issued: IssuedKey) -> None:
    stored = str(list(AccessKey.objects.values())) + str(list(AuditEvent.objects.values()))
    assert issued.secret not in stored
    assert issued.secret not in repr(issued)


@pytest.mark.parametrize("secret", ["", "wrong", "\x00", "ü" * 10])
def test_a_wrong_secret_does_not_open(issued: IssuedKey, secret: str) -> None:
    assert check(issued, secret=secret) is None


@pytest.mark.parametrize("key_id", ["", "AKIA", "AKIAXXXXXXXXXXXXXXXX", "\x00", "x" * 5000])
def test_an_unknown_id_does_not_open(issued: IssuedKey, key_id: str) -> None:
    assert check(issued, key_id=key_id) is None


def test_an_expired_key_does_not_open(teammate: User) -> None:
    soon = timezone.now() + timedelta(seconds=5)
    issued = services.key_create(actor=teammate, user=teammate, expires_at=soon)
    assert check(issued) is not None
    assert check(issued, now=soon) is None


def test_a_disabled_key_does_not_open(issued: IssuedKey, owner: User) -> None:
    assert services.key_disable(actor=owner, key=issued.key)
    assert check(issued) is None
    assert not services.key_disable(actor=owner, key=issued.key)


def test_a_disabled_users_key_does_not_open(issued: IssuedKey, owner: User, teammate: User) -> None:
    services.user_set_active(actor=owner, user=teammate, active=False)
    assert check(issued) is None


def test_only_usable_keys_are_active(issued: IssuedKey, teammate: User) -> None:
    old = services.key_create(actor=teammate, user=teammate, expires_at=timezone.now() + timedelta(days=1))
    AccessKey.objects.filter(pk=old.key.pk).update(expires_at=timezone.now() - timedelta(days=1))
    assert list(AccessKey.objects.active(timezone.now())) == [issued.key]


def test_the_last_use_is_noted_at_most_once_a_minute(issued: IssuedKey) -> None:
    start = timezone.now()
    for seconds, expected in ((0, 0), (59, 0), (61, 61)):
        check(issued, now=start + timedelta(seconds=seconds))
        issued.key.refresh_from_db()
        assert issued.key.last_used_at == start + timedelta(seconds=expected)


def test_a_key_used_lately_costs_one_query(issued: IssuedKey, django_assert_num_queries: Any) -> None:
    check(issued)
    with django_assert_num_queries(1):
        check(issued)


def test_an_id_and_a_secret_of_ones_own_can_be_given_once(owner: User, teammate: User) -> None:
    own = {"key_id": "AKIALAKEMIRRORDEMO", "secret": "lakemirror-demo-secret"}
    services.key_create(actor=owner, user=owner, **own)
    assert services.key_check(**own) is not None
    with pytest.raises(Conflict, match="AKIALAKEMIRRORDEMO"):
        services.key_create(actor=owner, user=teammate, **own)


@pytest.mark.parametrize("own", [{"key_id": "a:b"}, {"secret": "short"}, {"secret": "ü" * 20}, {"key_id": "x" * 41}])
def test_a_poor_id_or_secret_is_refused(owner: User, own: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        services.key_create(actor=owner, user=owner, **own)


def test_keys_outlive_a_change_of_the_site_key_that_keeps_the_old_one(issued: IssuedKey, settings: Any) -> None:
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another"
    assert check(issued) is not None
    settings.SECRET_KEY_FALLBACKS = []
    assert check(issued) is None


# --- rotating ---------------------------------------------------------------------------------------------------------


def test_a_rotated_key_works_on_until_the_overlap_is_over(issued: IssuedKey, owner: User) -> None:
    successor = services.key_rotate(actor=owner, key=issued.key, overlap=timedelta(hours=2))
    assert check(successor) is not None
    assert check(issued) is not None
    assert check(issued, now=timezone.now() + timedelta(hours=2, seconds=1)) is None
    assert (successor.key.description, successor.key.expires_at) == ("laptop", None)
    ended, made = AuditEvent.objects.filter(actor="olga")[:2]
    assert (ended.before["key_id"], made.after["key_id"]) == (issued.key.key_id, successor.key.key_id)


def test_the_next_key_is_good_for_as_long_as_the_one_before_was_made_for(teammate: User) -> None:
    ninety = timedelta(days=90)
    issued = services.key_create(actor=teammate, user=teammate, expires_at=timezone.now() + ninety)
    AccessKey.objects.update(expires_at=timezone.now() + timedelta(hours=1), created_at=timezone.now() - ninety)
    successor = services.key_rotate(actor=teammate, key=issued.key)
    assert successor.key.expires_at - timezone.now() > ninety
    assert issued.key.expires_at - timezone.now() < timedelta(hours=1), "it never lasts longer than it did"


def test_a_key_that_opens_nothing_is_not_rotated(issued: IssuedKey, owner: User) -> None:
    services.key_disable(actor=owner, key=issued.key)
    with pytest.raises(Conflict, match="no longer works"):
        services.key_rotate(actor=owner, key=issued.key)
    for overlap in (timedelta(seconds=-1), timedelta(days=31)):
        with pytest.raises(Invalid, match="overlap"):
            services.key_rotate(actor=owner, key=issued.key, overlap=overlap)


# --- over HTTP --------------------------------------------------------------------------------------------------------


class Who(APIView):
    def get(self, request: Request) -> Response:
        services.audit(actor=request.user, right=("fs:ReadRepository", "*"), verb="change")
        return Response({"user": request.user.username})


def get(header: str = "") -> Response:
    request = RequestFactory().get("/who", headers={"Authorization": header} if header else None)
    with requests.answering(request):
        return Who.as_view()(request).render()


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


def test_basic_credentials_say_who_it_is_and_the_audit_which_key(issued: IssuedKey) -> None:
    response = get(basic(f"{issued.key.key_id}:{issued.secret}"))
    assert response.data == {"user": "tom"}
    event = AuditEvent.objects.first()
    assert (event.actor, event.key_id, event.address) == ("tom", issued.key.key_id, "127.0.0.1")


@pytest.mark.parametrize(
    "header",
    ["", "Bearer x", "Basic", "Basic !!!", basic("no colon"), basic("AKIA:x"), "Basic " + "/w==", basic("\x00:\x00")],
)
def test_everything_else_is_a_401_with_a_message(db: None, header: str) -> None:
    response = get(header)
    assert response.status_code == 401
    assert list(response.data) == ["message"]
    assert response["WWW-Authenticate"].startswith("Basic realm=")


def test_a_wrong_secret_and_a_disabled_key_give_the_same_answer(issued: IssuedKey, owner: User) -> None:
    wrong = get(basic(f"{issued.key.key_id}:wrong")).data
    services.key_disable(actor=owner, key=issued.key)
    assert get(basic(f"{issued.key.key_id}:{issued.secret}")).data == wrong


def test_credentials_of_another_scheme_are_left_to_others() -> None:
    request = Request(RequestFactory().get("/", headers={"Authorization": "Bearer x"}))
    assert AccessKeyAuthentication().authenticate(request) is None
    with pytest.raises(AuthenticationFailed):
        AccessKeyAuthentication().authenticate(Request(RequestFactory().get("/", headers={"Authorization": "basic x"})))
