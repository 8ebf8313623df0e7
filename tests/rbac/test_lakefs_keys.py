"""Keys of lakeFS open LakeMirror, as its documents show: whose they are, what they may, and who is kept out."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from audit.models import AuditEvent
from core.errors import Unreachable
from deployment import config
from deployment.wiring import clients
from rbac import services
from rbac.keys import authenticators, lakefs_keys
from rbac.keys.rate_limit import Buckets
from rbac.models import Group, Membership, User
from rbac.services import builtin
from rbac.services.lakefs_users import There, lakefs_user
from rbac.signin import openid
from tests.cast import person
from tests.documented import answers_as_documented
from tests.rbac.elsewhere import SECRET, Elsewhere, Tell, ask

pytestmark = pytest.mark.django_db

MIRRORS = "/service/replication/v1/repositories/lake/mirrors"
USER = "/api/v1/user"


@pytest.fixture(autouse=True)
def documented() -> Iterator[None]:
    """What the API answers is what its document says."""
    with answers_as_documented():
        yield


def knows_keys(there: Elsewhere, name: str = "tom", creation_date: Any = 7, key_id: str = "LAKEFSKEY") -> None:
    """lakeFS lets this one key in, as the user of that name."""
    right = "Basic " + base64.b64encode(f"{key_id}:{SECRET}".encode()).decode()

    def who(request: BaseHTTPRequestHandler) -> tuple[int, Any]:
        known = request.headers["Authorization"] == right
        user = {"id": name, "creation_date": creation_date}
        return (200, {"user": user}) if known else (401, {"message": "error"})

    there.answers["/api/v1/user"] = who  # type: ignore[assignment]


def test_without_a_word_in_the_configuration_lakefs_keys_are_looked_up(tell: Tell) -> None:
    tell()
    kinds = [type(one).__name__ for one in authenticators.configured()]
    assert kinds == ["OwnKeys", "LakeFSKeys"]
    tell(api={"endpoint": "http://127.0.0.1:9"})
    kinds = [type(one).__name__ for one in authenticators.configured()]
    assert kinds == ["OwnKeys", "AuthorizationService"]


def test_who_has_a_key_of_lakefs_comes_in_without_rights_and_gets_those_that_they_are_given(
    there: Elsewhere, tell: Tell, owner: User
) -> None:
    tell(lakefs_url=there.url)
    knows_keys(there, "ann")
    refused = ask("LAKEFSKEY", path=MIRRORS)
    assert refused.status_code == 403
    assert "ann@us-east-1 may not fs:ListRepositories" in refused.json()["message"]
    assert ask("LAKEFSKEY", path=USER).json()["user"]["lakefs_region"] == "us-east-1"
    user = User.objects.get(username="ann@us-east-1")
    assert not user.has_usable_password()
    made = AuditEvent.objects.get(arn=user.arn)
    assert (made.actor, made.action) == ("system:lakefs", "auth:CreateUser")
    builtin.install()
    services.group_add(actor=owner, group=Group.objects.get(name="Viewers"), user=user)
    assert ask("LAKEFSKEY", path=MIRRORS).status_code == 200
    assert ask("LAKEFSKEY", path="/api/v1/auth/users/olga/sessions").status_code == 403
    assert len(there.asked) == 1


def test_who_comes_first_joins_the_group_that_is_configured(
    there: Elsewhere, tell: Tell, caplog: pytest.LogCaptureFixture
) -> None:
    builtin.install()
    tell(lakefs_url=there.url, lakefs={"group": "Viewers"})
    knows_keys(there, "ann")
    assert ask("LAKEFSKEY", path=MIRRORS).status_code == 200
    joined = AuditEvent.objects.get(action="auth:AddGroupMember", actor="system:lakefs")
    assert (joined.reason, joined.after) == ("auth.lakefs.group", {"user": "ann@us-east-1"})
    Membership.objects.filter(user__username="ann@us-east-1").delete()
    assert ask("LAKEFSKEY", path=MIRRORS).status_code == 403, "what was taken from them is not given again"
    tell(lakefs_url=there.url, lakefs={"group": "Nobody"})
    knows_keys(there, "ben")
    with caplog.at_level(logging.ERROR):
        assert ask("LAKEFSKEY", path=MIRRORS).status_code == 403
    assert "there is no group 'Nobody'" in caplog.text


def test_a_user_here_of_the_same_name_is_somebody_else(there: Elsewhere, tell: Tell, owner: User) -> None:
    tell(lakefs_url=there.url)
    knows_keys(there, owner.username)
    assert ask("LAKEFSKEY", path=USER).json()["user"]["id"] == f"{owner.username}@us-east-1"
    assert ask("LAKEFSKEY", path=MIRRORS).status_code == 403


@pytest.mark.parametrize("name", ["eve@us-east-1", "Eve@us-east-1", "EVE@US-EAST-1"])
def test_a_user_made_here_is_never_taken_over(there: Elsewhere, tell: Tell, owner: User, name: str) -> None:
    builtin.install()
    local = person(name)
    services.group_add(actor=owner, group=Group.objects.get(name="Admins"), user=local)
    tell(lakefs_url=there.url)
    knows_keys(there, "eve")
    for _ in range(2):
        refused = ask("LAKEFSKEY", path=USER)
        assert refused.status_code == 403
        assert "can't sign in" in refused.json()["message"]
    local.refresh_from_db()
    assert local.lakefs_region == ""


def test_a_name_that_lakefs_gave_anew_is_somebody_else(there: Elsewhere, tell: Tell, owner: User) -> None:
    tell(lakefs_url=there.url, lakefs={"group": "Viewers"})
    builtin.install()
    knows_keys(there, "ann", creation_date=7)
    assert ask("LAKEFSKEY", path=MIRRORS).status_code == 200
    knows_keys(there, "ann", creation_date=8, key_id="HERKEY")
    refused = ask("HERKEY", path=MIRRORS)
    assert refused.status_code == 403
    assert "created again" in refused.json()["message"] and "deleted here" in refused.json()["message"]
    tell(lakefs_url=there.url)
    services.user_delete(actor=owner, user=User.objects.get(username="ann@us-east-1"))
    assert ask("HERKEY", path=USER).status_code == 200
    assert ask("HERKEY", path=MIRRORS).status_code == 403, "she has none of the former one's rights"


def test_a_renamed_user_comes_as_a_new_one_without_rights(there: Elsewhere, tell: Tell) -> None:
    tell(lakefs_url=there.url, lakefs={"ttl": "1s"})
    for name in ("ann", "anna"):
        knows_keys(there, name)
        authenticators.configured.cache_clear()
        assert ask("LAKEFSKEY", path=USER).json()["user"]["id"] == f"{name}@us-east-1"


@pytest.mark.parametrize("name", ["a b", "a/b", "*", "${user}", "", "x" * 200, "ä", "-a", 7, None])
def test_a_name_that_cant_be_one_here_comes_in_as_nobody(there: Elsewhere, tell: Tell, name: Any) -> None:
    tell(lakefs_url=there.url)
    knows_keys(there, name)
    users = User.objects.count()
    assert ask("LAKEFSKEY", path=USER).status_code in (403, 503)
    assert User.objects.count() == users


def test_a_key_of_another_installation_with_the_same_id_opens_nothing(
    there: Elsewhere, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(lakefs_url=there.url)
    knows_keys(there, "ann")
    assert ask("LAKEFSKEY", "the secret that it has in another region", path=USER).status_code == 401
    tell(lakefs={"region": "us-west-2"})
    asked: list[str] = []
    monkeypatch.setattr(clients, "user_at", lambda url, *key: asked.append(url))
    assert authenticators.user_of("LAKEFSKEY", SECRET) is None
    assert asked == [config.current().lakefs_url("us-west-2")]


def test_another_regions_user_of_the_name_is_another_one(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "user_at", lambda *_: ("ann", 7))
    names = []
    for region in ("us-east-1", "us-west-2"):
        tell(lakefs={"region": region})
        user = authenticators.user_of("LAKEFSKEY", SECRET)
        assert user is not None
        names.append(user.username)
    assert names == ["ann@us-east-1", "ann@us-west-2"]


def test_a_key_that_lakefs_shares_an_id_with_ours_is_ours(there: Elsewhere, tell: Tell, owner: User) -> None:
    own = services.key_create(actor=owner, user=owner).key
    tell(lakefs_url=there.url)
    knows_keys(there, "ann", key_id=own.key_id)
    assert ask(own.key_id, path=USER).status_code == 401
    assert there.asked == []


@pytest.mark.parametrize("answer", [(500, {}), (403, {}), (302, {}), (200, None), (200, []), (200, {"user": {}})])
def test_what_lakefs_does_not_clearly_say_lets_nobody_in(there: Elsewhere, tell: Tell, answer: Any) -> None:
    tell(lakefs_url=there.url)
    there.answers["/api/v1/user"] = answer
    refused = ask("LAKEFSKEY", path=USER)
    assert refused.status_code == 503
    assert "which is asked whose this key is" in refused.json()["message"]


def test_while_lakefs_is_down_its_keys_are_a_503_and_ours_go_on(tell: Tell, owner: User) -> None:
    tell(lakefs_url="http://127.0.0.1:9")
    own = services.key_create(actor=owner, user=owner)
    assert ask("LAKEFSKEY", path=USER).status_code == 503
    assert ask(own.key.key_id, own.secret, path=USER).status_code == 200
    assert ask(own.key.key_id, "wrong", path=USER).status_code == 401


def test_who_is_disabled_here_stays_out_and_a_deleted_key_works_no_longer_than_is_told(
    there: Elsewhere, tell: Tell, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(lakefs_url=there.url, lakefs={"ttl": "10s"})
    knows_keys(there, "ann")
    now = [100.0]
    monkeypatch.setattr("rbac.keys.ttl_cache.time.monotonic", lambda: now[0])
    one = authenticators.configured()[1]
    for seconds, calls in ((100, 1), (109, 1), (111, 2)):
        now[0] = seconds
        assert isinstance(one.user_of("LAKEFSKEY", SECRET), User)
        assert len(there.asked) == calls
    user = User.objects.get(username="ann@us-east-1")
    services.user_set_active(actor=owner, user=user, active=False)
    assert ask("LAKEFSKEY", path=USER).status_code == 401, "at once, whatever is remembered"
    services.user_set_active(actor=owner, user=user, active=True)
    there.answers["/api/v1/user"] = 401, {"message": "error"}
    assert ask("LAKEFSKEY", path=USER).status_code == 200
    now[0] = 122
    assert ask("LAKEFSKEY", path=USER).status_code == 401


def test_a_remembered_key_is_that_of_the_server_that_was_asked(there: Elsewhere, tell: Tell) -> None:
    tell(lakefs_url=there.url)
    knows_keys(there, "ann")
    one = authenticators.configured()[1]
    assert isinstance(one.user_of("LAKEFSKEY", SECRET), User)
    tell(lakefs_url=f"{there.url}/other")
    with pytest.raises(Unreachable):
        one.user_of("LAKEFSKEY", SECRET)
    assert [path for path, _ in there.asked] == ["/api/v1/user", "/other/api/v1/user"]


def test_nothing_of_the_key_is_stored_or_logged(there: Elsewhere, tell: Tell, caplog: pytest.LogCaptureFixture) -> None:
    tell(lakefs_url=there.url)
    knows_keys(there, "ann")
    with caplog.at_level(logging.DEBUG):
        ask("LAKEFSKEY", path=MIRRORS)
        ask("LAKEFSKEY", "a wrong secret", path=MIRRORS)
    with connection.cursor() as cursor:
        rows = ""
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            rows += str(cursor.fetchall())
    kept = str(authenticators.configured()[1]._remembered._entries)  # type: ignore[attr-defined]
    for secret in (SECRET, "a wrong secret", base64.b64encode(f"LAKEFSKEY:{SECRET}".encode()).decode()):
        assert secret not in rows + caplog.text + kept


def test_who_tries_many_keys_does_not_make_us_ask_lakefs_for_each(
    there: Elsewhere, tell: Tell, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lakefs_keys, "ASKED_AT_ONCE", 3)
    tell(lakefs_url=there.url)
    knows_keys(there, "ann")
    asked = authenticators.configured()[1]._asked  # type: ignore[attr-defined]
    assert isinstance(asked, Buckets)
    asked._clock = lambda: 0.0
    assert ask("LAKEFSKEY", path=USER).status_code == 200
    tried = [ask(f"KEY{number}", path=USER) for number in range(4)]
    assert [one.status_code for one in tried] == [401, 401, 429, 429]
    assert tried[-1].headers["Retry-After"] == "1"
    assert len(there.asked) == 3
    assert ask("LAKEFSKEY", path=USER).status_code == 200, "who was let in is remembered"
    own = services.key_create(actor=owner, user=owner)
    assert ask(own.key.key_id, own.secret, path=USER).status_code == 200, "our own keys are not lakeFS's"
    assert ask("KEY9", path=USER, REMOTE_ADDR="192.0.2.7").status_code == 401


def test_of_two_who_come_first_at_once_one_makes_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    there = There("us-east-1", "ann", 7)
    first = lakefs_user(there)
    looks = iter([None, first])
    monkeypatch.setattr("rbac.services.lakefs_users._here", lambda _: next(looks))
    assert lakefs_user(there) == first


def test_an_openid_provider_that_gives_such_a_name_signs_nobody_in(rf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lakefs_user(There("us-east-1", "ann", 7))
    claims = {"preferred_username": "ann@us-east-1"}
    monkeypatch.setattr(openid, "_run_step", lambda _: {"userinfo": claims})
    with pytest.raises(openid.Refused, match="may not sign in"):
        openid.user_of(rf.get("/"))


def test_an_authorization_service_that_gives_such_a_name_lets_nobody_in(there: Elsewhere, tell: Tell) -> None:
    lakefs_user(There("us-east-1", "ann", 7))
    tell(api={"endpoint": f"{there.url}/api/v1"})
    there.answers["/api/v1/auth/credentials/K"] = 200, {"secret_access_key": SECRET, "user_name": "ann@us-east-1"}
    there.answers["/api/v1/auth/users/ann%40us-east-1/policies"] = 200, {"results": []}
    assert ask("K", path=USER).status_code == 403


def test_the_users_page_says_by_whose_keys_they_come(client: Client, owner: User) -> None:
    lakefs_user(There("us-east-1", "ann", 7))
    client.force_login(owner)
    assert "with lakeFS keys of us-east-1" in client.get("/access/users/ann@us-east-1/").content.decode()
