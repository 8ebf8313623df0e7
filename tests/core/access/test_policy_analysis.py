"""What policies come to, step by step."""

from __future__ import annotations

import pytest

from core.access.policies import Policy, parse_policy
from core.access.policy_analysis import Need, PermissionStep, Person, changes, check_question, covering, places_named
from core.errors import Invalid

LAKE, POND = ({"source": name} for name in ("lake", "pond"))
PAUSE = PermissionStep("pause", "Pause a mirror", (Need("fs:MirrorRepository", "arn:lakefs:fs:::repository/{source}"),))
RUN = PermissionStep(
    "run", "Run an export", (Need("fs:CreateCommit", "arn:lakefs:fs:::repository/{repository}/branch/{branch}"),)
)
USE = "arn:lakefs:fs:::repository/"


def policy(name: str, *statements: tuple[str, str, str]) -> Policy:
    told = [{"effect": effect, "action": [action], "resource": resource} for effect, action, resource in statements]
    return parse_policy({"id": name, "statement": told})


def test_every_statement_that_speaks_of_a_question_is_named_in_order() -> None:
    held = [
        policy("a", ("allow", "fs:Read*", "*"), ("allow", "auth:*", "*")),
        policy("b", ("deny", "fs:ReadObject", f"{USE}lake/*")),
    ]
    found = covering(held, "fs:ReadObject", f"{USE}lake/object/x", "ann")
    assert [(one.policy, one.number) for one in found] == [("a", 1), ("b", 1)]


def test_a_statement_about_the_whole_speaks_of_its_part() -> None:
    held = (policy("a", ("allow", "fs:MirrorRepository", "*"), ("deny", "fs:OperateMirror", f"{USE}pond")),)
    found = covering(held, "fs:OperateMirror", f"{USE}pond", "ann")
    assert [one.number for one in found] == [1, 2]
    sync = PermissionStep("sync", "Sync", (Need("fs:OperateMirror", USE + "{source}"),))
    (change,) = changes(sync, [LAKE, POND], [Person("ann", (), held)])
    assert (change.arns, change.gained) == ((f"{USE}lake",), ("ann",))


@pytest.mark.parametrize("action", ["fs:*", "fs:", "ReadObject", "s3:GetObject", "", "fs:Read Object"])
def test_a_question_is_about_one_action(action: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_question(action, "*")
    assert caught.value.field == "action"


@pytest.mark.parametrize("arn", ["lake", "", "arn:aws:s3:::x", "arn:lakefs:fs:::"])
def test_a_question_is_about_a_resource(arn: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_question("fs:ReadObject", arn)
    assert caught.value.field == "arn"


def test_a_change_names_who_gains_and_who_loses_at_each_place() -> None:
    old, new = (policy("p", ("allow", "fs:MirrorRepository", f"{USE}{name}")) for name in ("lake", "pond"))
    other = policy("q", ("allow", "fs:*", "*"))
    people = [Person("ann", (old,), (new,)), Person("bob", (old, other), (new, other)), Person("eve", (), ())]
    lake, pond = changes(PAUSE, [LAKE, POND, {"source": "sea"}], people)
    assert (lake.lost, lake.users_after) == (("ann",), ("bob",))
    assert (pond.gained, pond.users_before) == (("ann",), ("bob",))
    assert (lake.before.allowed, lake.after.allowed, lake.after.arn) == (True, False, f"{USE}lake")


def test_who_is_meant_by_user_is_judged_by_their_own_name() -> None:
    step = PermissionStep("keys", "Make keys", (Need("auth:CreateCredentials", "arn:lakefs:auth:::user/{user}"),))
    own = policy("own", ("allow", "auth:CreateCredentials", "arn:lakefs:auth:::user/${user}"))
    people = [Person(name, (), (own,)) for name in ("ann", "bob")]
    (change,) = changes(step, [{"user": "ann"}, {"user": "eve"}], people)
    assert change.gained == ("ann",)


def test_a_policys_own_resources_are_places_and_any_other_is() -> None:
    held = [policy("p", ("allow", "fs:*", f"{USE}lake/branch/a/b"), ("deny", "fs:*", f"{USE}${{user}}"))]
    assert list(places_named(RUN, held)) == [
        {"repository": "*", "branch": "*"},
        {"repository": "lake", "branch": "a/b"},
    ]
    assert list(places_named(PAUSE, held)) == [{"source": "*"}]
