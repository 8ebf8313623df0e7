"""What people may do and why, by the API: effective permissions, a question tried out, the impact of a draft."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core.access.policies import parse_policy
from rbac import services
from rbac.models import Group, Policy, User
from rbac.services.effective_permissions import who_can_grant
from rbac.services.policy_impact import impact
from tests.cast import person
from tests.exports.test_pages import an_export
from tests.mirrors.factories import make_mirror, make_repository

pytestmark = pytest.mark.django_db

NOW = datetime.now(UTC)
LAKE = "arn:lakefs:fs:::repository/lake"
AUTH = "/api/v1/auth"


def statement(effect: str, action: str, resource: str = LAKE) -> dict[str, Any]:
    return {"effect": effect, "action": [action], "resource": resource}


def put(name: str, *statements: dict[str, Any]) -> Policy:
    return services.policy_put(actor="system:tests", document={"id": name, "statement": list(statements)})


def give(policy: Policy, user: User | None = None, group: Group | None = None) -> None:
    services.policy_attach(actor="system:tests", policy=policy, user=user, group=group)


def ask(asker: User, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    client = Client()
    client.force_login(asker)
    answer = client.generic(method, f"{AUTH}/{path}", json.dumps(body), content_type="application/json")
    return answer.status_code, json.loads(answer.content)


@pytest.fixture
def ann(outsider: User) -> User:
    """Ann may mirror the lake through a group, but not by her own name."""
    ann = person("ann")
    makers = services.group_create(actor="system:tests", name="Makers")
    services.group_add(actor="system:tests", group=makers, user=ann)
    give(put("make", statement("allow", "fs:MirrorRepository"), statement("allow", "fs:List*", "*")), group=makers)
    give(put("not-the-lake", statement("deny", "fs:MirrorRepository")), user=ann)
    return ann


def test_every_statement_is_told_with_the_way_by_which_it_reaches_the_user(ann: User, owner: User) -> None:
    status, told = ask(owner, "GET", "users/ann/effective-permissions")
    found = [(one["policy"], one["number"], one["effect"], one["own"], one["groups"]) for one in told["statements"]]
    assert (status, told["user"], told["active"]) == (200, "ann", True)
    assert found == [
        ("make", 1, "allow", False, ["Makers"]),
        ("make", 2, "allow", False, ["Makers"]),
        ("not-the-lake", 1, "deny", True, []),
    ]


def test_the_statement_that_decides_is_named_and_so_are_the_others(ann: User, owner: User) -> None:
    question = {"user": "ann", "action": "fs:MirrorRepository", "arn": LAKE}
    status, told = ask(owner, "POST", "simulate", question)
    assert (status, told["allowed"], told["deciding"]["policy"]) == (200, False, "not-the-lake")
    assert [one["policy"] for one in told["others"]] == ["make"]
    assert "attached directly, denies it. A deny overrides" in told["reason"]
    _, told = ask(owner, "POST", "simulate", question | {"action": "fs:ListRepositories", "arn": "*"})
    assert (told["allowed"], told["reason"]) == (True, "Statement 2 of policy 'make', through Makers, allows it.")
    _, told = ask(owner, "POST", "simulate", question | {"action": "fs:ReadObject"})
    assert (told["allowed"], told["deciding"]) == (False, None)


def test_of_a_disabled_user_nothing_counts(ann: User, owner: User) -> None:
    services.user_set_active(actor="system:tests", user=ann, active=False)
    _, told = ask(owner, "POST", "simulate", {"user": "ann", "action": "fs:ListRepositories", "arn": "*"})
    assert (told["allowed"], told["deciding"], told["others"]) == (False, None, [])
    assert "is disabled" in told["reason"]


def test_everybody_may_ask_about_themselves_and_others_need_the_right(ann: User, outsider: User) -> None:
    question = {"action": "fs:ListRepositories", "arn": "*"}
    assert ask(ann, "POST", "simulate", question)[1]["allowed"] is True
    assert ask(ann, "GET", "users/ann/effective-permissions")[0] == 200
    for method, path, body in (
        ("POST", "simulate", question | {"user": "otto"}),
        ("GET", "users/otto/effective-permissions", None),
        ("POST", "policies/make/impact", {"statement": None}),
    ):
        status, told = ask(ann, method, path, body)
        assert status == 403 and ("auth:ReadUser" in told["message"] or "auth:ReadPolicy" in told["message"])


def test_bad_questions_and_users_who_are_not_there_are_named(owner: User) -> None:
    question = {"action": "fs:ListRepositories", "arn": "*"}
    for wrong, status, named in (
        ({"user": "nobody"}, 404, "there is no user 'nobody'"),
        ({"action": "fs:*"}, 400, "action"),
        ({"arn": "lake"}, 400, "arn"),
    ):
        got, told = ask(owner, "POST", "simulate", question | wrong)
        assert got == status and named in told["message"]
    got, told = ask(owner, "POST", "policies/x/impact", {"statement": [statement("allow", "lake")]})
    assert got == 400 and "action of statement 1" in told["message"]


# --- impact -----------------------------------------------------------------------------------------------------------


def test_a_draft_tells_which_steps_it_breaks_and_allows_and_for_whom(ann: User, owner: User) -> None:
    make_mirror("lake-eu", make_repository("lake", now=NOW), now=NOW)
    draft = [statement("allow", "fs:DeleteRepository", "arn:lakefs:fs:::repository/lake-*")]
    status, told = ask(owner, "POST", "policies/make/impact", {"statement": draft})
    found = {(one["step"], one["resources"][-1]): one for one in told["changes"]}
    seeing = found["mirrors.see", "arn:lakefs:fs:::repository/*"]
    assert (status, seeing["users_before"], seeing["users_after"], seeing["lost"]) == (200, ["ann"], [], 1)
    assert (seeing["before"]["deciding"]["policy"], seeing["after"]["deciding"]) == ("make", None)
    deleting = found["mirrors.delete", "arn:lakefs:fs:::repository/lake-eu"]
    assert (deleting["users_before"], deleting["users_after"], deleting["gained"]) == ([], ["ann"], 1)
    assert (told["people"], told["breaks"], told["changes"][0]["lost"]) == (1, 3, 1)
    assert not any(one["step"] == "mirrors.pause" for one in told["changes"]), "another policy denies it as before"
    assert Policy.objects.get(name="make").statement != draft, "nothing is stored"


def test_a_policy_that_nobody_has_tells_what_it_allows_alone_and_to_whom_it_is_to_be_given(
    owner: User, outsider: User
) -> None:
    an_export("main")
    draft = {"statement": [statement("allow", "fs:CreateCommit", "arn:lakefs:fs:::repository/analytics/branch/*")]}
    _, told = ask(owner, "POST", "policies/runner/impact", draft)
    alone = {(one["step"], *one["resources"]) for one in told["alone"]}
    branch = "arn:lakefs:fs:::repository/analytics/branch/"
    assert (told["people"], told["changes"]) == (0, [])
    assert {("exports.run", f"{branch}main"), ("exports.repair", f"{branch}*")} <= alone
    _, told = ask(owner, "POST", "policies/runner/impact", draft | {"users": ["otto"]})
    assert {tuple(one["users_after"]) for one in told["changes"]} == {("otto",)}


def test_names_are_only_for_who_may_read_the_users(ann: User, outsider: User) -> None:
    give(put("reads-policies", statement("allow", "auth:ReadPolicy", "arn:lakefs:auth:::policy/*")), user=outsider)
    _, told = ask(outsider, "POST", "policies/make/impact", {"statement": None})
    assert [(one["users_before"], one["lost"]) for one in told["changes"]] == [([], 1)] * 4


def test_the_questions_to_the_database_do_not_grow_with_people_and_mirrors(ann: User) -> None:
    draft = parse_policy({"id": "make", "statement": [statement("allow", "fs:*", "*")]})

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            impact("make", draft)
        return len(seen)

    few = queries()
    source = make_repository("lake", now=NOW)
    for number in range(5):
        make_mirror(f"lake-{number}", source, now=NOW)
        services.group_add(actor="system:tests", group=Group.objects.get(name="Makers"), user=person(f"u{number}"))
    assert queries() == few


# --- who can grant ----------------------------------------------------------------------------------------------------


def test_who_can_grant_is_who_may_attach_policies_to_that_user(owner: User, ann: User, teammate: User) -> None:
    give(put("all-but-ann", statement("deny", "auth:AttachPolicy", ann.arn)), user=person("ada", "Admins"))
    give(put("ann-only", statement("allow", "auth:AttachPolicy", ann.arn)), user=teammate)
    assert (who_can_grant(ann), who_can_grant(teammate)) == (["olga", "tom"], ["ada", "olga"])


def test_a_403_page_says_why_and_who_can_grant_it(client: Client, owner: User, ann: User, outsider: User) -> None:
    make_mirror("lake-eu", make_repository("lake", now=NOW), now=NOW)
    client.force_login(outsider)
    told = " ".join(client.get("/mirrors/").content.decode().split())
    assert "None of your policies allows it" in told and "<strong>olga</strong>" in told
    client.force_login(ann)
    told = " ".join(client.post("/mirrors/lake-eu/sync/").content.decode().split())
    assert "Statement 1 of <strong>not-the-lake</strong>, attached directly" in told
    assert "A deny overrides" in told


def test_where_nobody_can_grant_it_the_page_says_who_makes_an_administrator(client: Client, outsider: User) -> None:
    client.force_login(outsider)
    assert "manage.py attach_policy" in client.get("/mirrors/").content.decode()
