"""Users, groups, policies and access keys by API, as lakeFS's scripts ask for them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from audit.models import AuditEvent
from rbac import services
from rbac.models import AccessKey, Policy, User
from tests.api import Api

AUTH = "/api/v1/auth"
ALLOW = {"effect": "allow", "action": ["fs:Read*"], "resource": "*"}


def policy(name: str = "P", *statements: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "statement": list(statements or (ALLOW,))}


def give(user: User, action: str | list[str], resource: str) -> None:
    """A policy of just this."""
    actions = [action] if isinstance(action, str) else action
    name = f"give{Policy.objects.count()}"
    document = policy(name, {"effect": "allow", "action": actions, "resource": resource})
    services.policy_attach(
        actor="system:tests", policy=services.policy_put(actor="system:tests", document=document), user=user
    )


def ids(answer: tuple[int, Any]) -> list[str]:
    status, page = answer
    assert status == 200
    return [one.get("id") or one["access_key_id"] for one in page["results"]]


# --- as lakeFS has it -------------------------------------------------------------------------------------------------


def test_a_user_is_made_found_listed_and_deleted(admin: Api) -> None:
    status, made = admin.call("POST", f"{AUTH}/users", {"id": "ann", "invite_user": False})
    assert status == 201
    assert abs(made.pop("creation_date") - timezone.now().timestamp()) < 60
    assert made == {"id": "ann", "friendly_name": "", "email": "", "is_active": True, "lakefs_region": None}
    assert admin.call("GET", f"{AUTH}/users/ann")[1]["id"] == "ann"
    assert ids(admin.call("GET", f"{AUTH}/users")) == ["ann", "olga"]
    assert admin.call("DELETE", f"{AUTH}/users/ann") == (204, None)
    assert admin.call("GET", f"{AUTH}/users/ann")[0] == 404
    assert admin.call("DELETE", f"{AUTH}/users/ann")[0] == 404


def test_a_group_has_members_and_policies(admin: Api, outsider: User) -> None:
    status, made = admin.call("POST", f"{AUTH}/groups", {"id": "readers", "description": "who reads"})
    assert (status, made["id"], made["name"], made["description"]) == (201, "readers", "readers", "who reads")
    assert admin.call("POST", f"{AUTH}/policies", policy("P"))[0] == 201
    member, held = f"{AUTH}/groups/readers/members/otto", f"{AUTH}/groups/readers/policies/P"
    for address in (member, held):
        assert [admin.call("PUT", address) for _ in range(2)] == [(201, None)] * 2
    assert ids(admin.call("GET", f"{AUTH}/groups/readers/members")) == ["otto"]
    assert ids(admin.call("GET", f"{AUTH}/groups/readers/policies")) == ["P"]
    assert ids(admin.call("GET", f"{AUTH}/users/otto/groups")) == ["readers"]
    assert ids(admin.call("GET", f"{AUTH}/users/otto/policies")) == []
    assert ids(admin.call("GET", f"{AUTH}/users/otto/policies?effective=true")) == ["P"]
    assert services.allowed(User.objects.get(pk=outsider.pk), "fs:ReadRepository", "*")
    for address in (member, held):
        assert [admin.call("DELETE", address)[0] for _ in range(2)] == [204, 404]
    assert admin.call("DELETE", f"{AUTH}/groups/readers") == (204, None)
    assert admin.call("GET", f"{AUTH}/groups/readers")[0] == 404


def test_a_policy_is_attached_edited_and_deleted(admin: Api, outsider: User) -> None:
    several = {"effect": "allow", "action": ["fs:ReadBranch"], "resource": ["arn:lakefs:fs:::repository/a", "*"]}
    status, made = admin.call("POST", f"{AUTH}/policies", policy("P", ALLOW, several))
    assert status == 201
    assert made["statement"] == [ALLOW, several | {"resource": json.dumps(several["resource"])}]
    assert admin.call("PUT", f"{AUTH}/users/otto/policies/P") == (201, None)
    assert ids(admin.call("GET", f"{AUTH}/users/otto/policies")) == ["P"]
    Policy.objects.filter(name="P").update(created_at=timezone.now() - timedelta(days=9))
    status, edited = admin.call("PUT", f"{AUTH}/policies/P", made | {"statement": [ALLOW]})
    assert (status, edited["statement"]) == (200, [ALLOW])
    assert edited["creation_date"] < made["creation_date"], "it is the one it was"
    assert admin.call("PUT", f"{AUTH}/policies/P", policy("Q"))[0] == 400
    assert admin.call("PUT", f"{AUTH}/policies/Q", policy("Q"))[0] == 404
    assert admin.call("DELETE", f"{AUTH}/users/otto/policies/P") == (204, None)
    assert admin.call("DELETE", f"{AUTH}/policies/P") == (204, None)
    assert admin.call("GET", f"{AUTH}/policies/P")[0] == 404


def test_a_name_that_is_taken_is_a_conflict(admin: Api) -> None:
    for kind, body in (("users", {"id": "Olga"}), ("groups", {"id": "Admins"}), ("policies", policy("AllAccess"))):
        status, told = admin.call("POST", f"{AUTH}/{kind}", body)
        assert (status, "already" in told["message"]) == (409, True)


def test_lists_come_in_pages_of_ids_that_begin_with_a_prefix(admin: Api) -> None:
    for name in ("Pd", "pb", "pa", "pc"):
        services.user_create(actor="system:tests", username=name + "x")
    status, page = admin.call("GET", f"{AUTH}/users?prefix=p&amount=2")
    assert (status, page["pagination"]) == (
        200,
        {"has_more": True, "next_offset": "pbx", "results": 2, "max_per_page": 1000},
    )
    assert ids(admin.call("GET", f"{AUTH}/users?prefix=p&amount=2&after=pbx")) == ["pcx"]
    assert ids(admin.call("GET", f"{AUTH}/users?prefix=P&amount=0")) == ["Pdx"]
    assert ids(admin.call("GET", f"{AUTH}/users?prefix=%25&amount=-1")) == []
    for amount in ("1001", "-2", "x", "--1"):
        assert admin.call("GET", f"{AUTH}/users?amount={amount}")[0] == 400


def test_everybody_may_ask_who_they_are(outsider: User) -> None:
    status, told = Api(outsider).call("GET", "/api/v1/user")
    assert (status, told["user"]["id"], told["user"]["friendly_name"]) == (200, "otto", "otto")
    assert Client().get("/api/v1/user").status_code == 401


# --- what is wrong is named -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (ALLOW | {"action": ["fs:Read Me"]}, "line 5: action of statement 2: 'fs:Read Me' is not an action"),
        (ALLOW | {"effect": "Allow"}, "line 5: effect of statement 2 must be 'allow' or 'deny', not \"Allow\""),
        (ALLOW | {"resource": "arn:aws:s3"}, "line 5: resource of statement 2: 'arn:aws:s3' is not an ARN. Use *"),
        (ALLOW | {"condition": {}}, "line 5: statement 2 has an unknown field 'condition'"),
        ([], "line 5: statement 2 must be a JSON object"),
    ],
)
def test_a_wrong_statement_is_named_with_its_line_and_field(admin: Api, statement: Any, told: str) -> None:
    text = '{"id": "P",\n "note\\u0041": [1],\n "statement": [\n%s,\n%s\n]}'.replace(' "note\\u0041": [1],', "")
    text %= (json.dumps(ALLOW), json.dumps(statement))
    services.policy_put(actor="system:tests", document=policy("P"))
    for method, address in (("POST", "policies"), ("PUT", "policies/P")):
        status, answer = admin.call(method, f"{AUTH}/{address}", text)
        assert (status, answer["message"][: len(told)]) == (400, told)
    assert Policy.objects.get(name="P").statement == [ALLOW]


@pytest.mark.parametrize(
    ("address", "body", "told"),
    [
        ("users", {}, "id"),
        ("users", {"id": "a b"}, "id: Use letters"),
        ("users", {"id": "ann", "invite_user": True}, "invite_user: invitations by email"),
        ("users", {"id": "ann", "is_active": True}, "is_active: is not a field here"),
        ("users", {"id": "ann", "password": "password"}, "This password is too common"),
        ("users", {"id": "ann", "email": "x"}, "email"),
        ("groups", {"id": "*"}, "id: Use letters"),
        ("policies", {"id": "P"}, "statement must be a list"),
        ("policies", {"id": "a/b", "statement": [ALLOW]}, "the policy needs an id"),
        ("policies", policy("P") | {"acl": {}}, "policy has an unknown field 'acl'"),
        ("users/olga/credentials", {"expires_at": "2001-01-01T00:00:00Z"}, "a new key can't expire in the past"),
        ("users/olga/credentials", {"access_key_id": "AKIAMINE"}, "access_key_id: is not a field here"),
    ],
)
def test_wrong_fields_are_named_and_nothing_is_made(admin: Api, address: str, body: Any, told: str) -> None:
    before = AuditEvent.objects.count()
    status, answer = admin.call("POST", f"{AUTH}/{address}", body)
    assert status == 400
    assert told in answer["message"]
    assert AuditEvent.objects.count() == before


# --- changing users ---------------------------------------------------------------------------------------------------


def test_a_user_is_changed_all_or_nothing(admin: Api, owner: User, outsider: User) -> None:
    change = {"email": "otto@example.org", "friendly_name": "Otto", "is_active": False, "password": None}
    status, told = admin.call("PATCH", f"{AUTH}/users/otto", change)
    assert (status, told["email"], told["friendly_name"], told["is_active"]) == (200, "otto@example.org", "Otto", False)
    assert not User.objects.get(username="otto").has_usable_password()
    status, told = admin.call("PATCH", f"{AUTH}/users/olga", {"friendly_name": "Boss", "is_active": False})
    assert (status, "Make somebody else an administrator first" in told["message"]) == (409, True)
    assert User.objects.get(username="olga").friendly_name == ""
    assert admin.call("PATCH", f"{AUTH}/users/otto", {"id": "root"})[0] == 400


# --- keys -------------------------------------------------------------------------------------------------------------


def test_a_key_is_shown_once_and_opens_until_it_is_deleted(admin: Api, outsider: User) -> None:
    keys = f"{AUTH}/users/otto/credentials"
    answer = admin.client.generic("POST", keys, headers=admin.headers)  # lakeFS's clients send no body
    made = answer.json()
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store")
    opens = {"key_id": made["access_key_id"], "secret": made.pop("secret_access_key")}
    assert services.key_check(**opens) is not None
    status, told = admin.call("GET", f"{keys}/{made['access_key_id']}")
    assert (status, told.pop("last_used_at") is not None) == (200, True)
    assert made.pop("last_used_at") is None
    assert told == made
    assert ids(admin.call("GET", keys)) == [made["access_key_id"]]
    assert admin.call("DELETE", f"{keys}/{made['access_key_id']}") == (204, None)
    assert services.key_check(**opens) is None
    assert opens["secret"] not in str(list(AuditEvent.objects.values()))


def test_a_key_is_disabled_and_rotated(admin: Api, outsider: User) -> None:
    keys, ends = f"{AUTH}/users/otto/credentials", timezone.now() + timedelta(days=9)
    status, made = admin.call("POST", keys, {"description": "laptop", "expires_at": ends.isoformat()})
    assert (status, made["description"], made["expires_at"][:16]) == (201, "laptop", ends.isoformat()[:16])
    status, after = admin.call("POST", f"{keys}/{made['access_key_id']}/rotate", {"overlap_seconds": 3600})
    assert (status, after["replaces"]["access_key_id"]) == (201, made["access_key_id"])
    assert after["replaces"]["expires_at"] < after["expires_at"]
    for key in (made, after):
        assert services.key_check(key_id=key["access_key_id"], secret=key["secret_access_key"]) is not None
    assert AccessKey.objects.get(key_id=made["access_key_id"]).expires_at < timezone.now() + timedelta(hours=2)
    status, told = admin.call("POST", f"{keys}/{after['access_key_id']}/disable")
    assert (status, told["disabled_at"] is not None) == (200, True)
    status, told = admin.call("POST", f"{keys}/{after['access_key_id']}/rotate")
    assert (status, "no longer works" in told["message"]) == (409, True)
    assert admin.call("POST", f"{keys}/{made['access_key_id']}/rotate", {"overlap_seconds": 10**9})[0] == 400


# --- who may ----------------------------------------------------------------------------------------------------------

OTTO, GROUP, POLICY = (f"arn:lakefs:auth:::{one}" for one in ("user/otto", "group/Viewers", "policy/ReadAll"))
NEEDS: list[tuple[str, str, Any, str | list[str], str, int]] = [
    ("GET", "users", None, "auth:ListUsers", "*", 200),
    ("POST", "users", {"id": "ann"}, "auth:CreateUser", "arn:lakefs:auth:::user/ann", 201),
    ("GET", "users/otto", None, "auth:ReadUser", OTTO, 200),
    ("PATCH", "users/otto", {"email": ""}, "auth:UpdateUser", OTTO, 200),
    ("GET", "users/otto/groups", None, "auth:ReadUser", OTTO, 200),
    ("GET", "users/otto/policies", None, "auth:ReadUser", OTTO, 200),
    ("PUT", "users/otto/policies/ReadAll", None, "auth:AttachPolicy", OTTO, 201),
    ("DELETE", "users/otto/policies/ReadAll", None, "auth:DetachPolicy", OTTO, 404),
    ("GET", "users/otto/credentials", None, "auth:ListCredentials", OTTO, 200),
    ("POST", "users/otto/credentials", None, "auth:CreateCredentials", OTTO, 201),
    ("GET", "users/otto/credentials/AKIAX", None, "auth:ReadCredentials", OTTO, 404),
    ("DELETE", "users/otto/credentials/AKIAX", None, "auth:DeleteCredentials", OTTO, 404),
    ("POST", "users/otto/credentials/AKIAX/disable", None, "auth:DeleteCredentials", OTTO, 404),
    (
        "POST",
        "users/otto/credentials/AKIAX/rotate",
        None,
        ["auth:CreateCredentials", "auth:DeleteCredentials"],
        OTTO,
        404,
    ),
    ("DELETE", "users/otto", None, "auth:DeleteUser", OTTO, 204),
    ("GET", "groups", None, "auth:ListGroups", "*", 200),
    ("POST", "groups", {"id": "g"}, "auth:CreateGroup", "arn:lakefs:auth:::group/g", 201),
    ("GET", "groups/Viewers", None, "auth:ReadGroup", GROUP, 200),
    ("GET", "groups/Viewers/members", None, "auth:ReadGroup", GROUP, 200),
    ("PUT", "groups/Viewers/members/otto", None, "auth:AddGroupMember", GROUP, 201),
    ("DELETE", "groups/Viewers/members/otto", None, "auth:RemoveGroupMember", GROUP, 404),
    ("GET", "groups/Viewers/policies", None, "auth:ReadGroup", GROUP, 200),
    ("PUT", "groups/Viewers/policies/AllAccess", None, "auth:AttachPolicy", GROUP, 201),
    ("DELETE", "groups/Viewers/policies/ReadAll", None, "auth:DetachPolicy", GROUP, 204),
    ("DELETE", "groups/Viewers", None, "auth:DeleteGroup", GROUP, 204),
    ("GET", "policies", None, "auth:ListPolicies", "*", 200),
    ("POST", "policies", policy("P"), "auth:CreatePolicy", "arn:lakefs:auth:::policy/P", 201),
    ("GET", "policies/ReadAll", None, "auth:ReadPolicy", POLICY, 200),
    ("PUT", "policies/ReadAll", policy("ReadAll"), "auth:UpdatePolicy", POLICY, 200),
    ("DELETE", "policies/ReadAll", None, "auth:DeletePolicy", POLICY, 204),
]


def test_each_call_needs_its_right_and_no_other(viewer: Api, teammate: User, outsider: User) -> None:
    """Tom may look at all repositories, and manage his own keys: that opens nothing here."""
    refused = [viewer.call(method, f"{AUTH}/{address}", body) for method, address, body, *_ in NEEDS]
    for (_, address, _, action, arn, _), (status, told) in zip(NEEDS, refused, strict=True):
        first = action if isinstance(action, str) else action[0]
        assert (status, f"may not {first} on {arn}" in told["message"]) == (403, True), (address, told)
    for method, address, body, action, arn, expected in NEEDS:
        with transaction.atomic():
            give(teammate, action, arn)
            assert viewer.call(method, f"{AUTH}/{address}", body)[0] == expected, (method, address)
            transaction.set_rollback(True)


def test_own_keys_are_ones_own_and_no_others(viewer: Api, teammate: User, owner: User) -> None:
    own = AccessKey.objects.get(user=teammate)
    hers = services.key_create(actor="system:tests", user=owner).key
    assert ids(viewer.call("GET", f"{AUTH}/users/tom/credentials")) == [own.key_id]
    status, made = viewer.call("POST", f"{AUTH}/users/tom/credentials")
    assert status == 201
    for method, rest in (("GET", ""), ("DELETE", ""), ("POST", "/disable"), ("POST", "/rotate")):
        assert viewer.call(method, f"{AUTH}/users/tom/credentials/{hers.key_id}{rest}")[0] == 404
        assert viewer.call(method, f"{AUTH}/users/olga/credentials/{hers.key_id}{rest}")[0] == 403
    assert viewer.call("DELETE", f"{AUTH}/users/tom/credentials/{made['access_key_id']}")[0] == 204
    assert services.keys_of(owner) == [hers]


def test_a_name_in_another_case_is_no_way_around_a_denial(viewer: Api, teammate: User, owner: User) -> None:
    give(teammate, "auth:*", "*")
    deny = {"effect": "deny", "action": ["auth:*"], "resource": "arn:lakefs:auth:::user/olga"}
    document = policy("NotOlga", deny)
    services.policy_attach(
        actor="system:tests", policy=services.policy_put(actor="system:tests", document=document), user=teammate
    )
    assert viewer.call("GET", f"{AUTH}/users/olga")[0] == 403
    assert viewer.call("GET", f"{AUTH}/users/OLGA")[0] == 404
    assert viewer.call("PATCH", f"{AUTH}/users/OLGA", {"is_active": False})[0] == 404


def test_a_session_needs_the_forms_token(owner: User, client: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(owner)
    assert strict.post(f"{AUTH}/users/olga/credentials").status_code == 403


def test_every_change_is_written_down_with_who_and_by_which_key(admin: Api, outsider: User) -> None:
    admin.call("DELETE", f"{AUTH}/users/otto")
    event = AuditEvent.objects.first()
    key = AccessKey.objects.get(user__username="olga")
    assert event is not None
    assert (event.actor, event.key_id, event.action, event.arn) == ("olga", key.key_id, "auth:DeleteUser", OTTO)


@pytest.mark.parametrize("address", ["users", "groups", "policies", "users/olga/policies?effective=true"])
def test_a_list_costs_as_much_however_long_it_is(admin: Api, address: str, django_assert_num_queries: Any) -> None:
    admin.call("GET", f"{AUTH}/{address}")
    with django_assert_num_queries(4 if "?" in address else 3):
        admin.call("GET", f"{AUTH}/{address}")
    for number in range(5):
        services.policy_put(actor="system:tests", document=policy(f"P{number}"))
        services.user_create(actor="system:tests", username=f"u{number}")
    with django_assert_num_queries(4 if "?" in address else 3):
        admin.call("GET", f"{AUTH}/{address}")
