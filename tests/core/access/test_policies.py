"""Policies say here what they say in lakeFS."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.access.policies import (
    Effect,
    Policy,
    Statement,
    deny_everything,
    evaluate,
    namespace_arn,
    parse_json,
    parse_policy,
    resource_match,
    wildcard_match,
)
from core.errors import Invalid

LAKE = "arn:lakefs:fs:::repository/lake"


def policy(*statements: tuple[str, str, str], name: str = "p") -> Policy:
    """A policy of (effect, action, resource) lines."""
    return Policy(
        name, tuple(Statement(Effect(effect), (action,), (resource,)) for effect, action, resource in statements)
    )


def document(**changes: Any) -> dict[str, Any]:
    statement = {"effect": "allow", "action": ["fs:ReadRepository"], "resource": LAKE} | changes
    return {"id": "p", "statement": [{k: v for k, v in statement.items() if v is not None}]}


def may(policies: list[Policy], action: str = "fs:ReadRepository", arn: str = LAKE, username: str = "olga") -> bool:
    return evaluate(policies, action, arn, username).allowed


# --- deciding ---------------------------------------------------------------------------------------------------------


def test_nothing_means_no() -> None:
    verdict = evaluate([], "fs:ReadRepository", LAKE, "olga")
    assert not verdict.allowed
    assert verdict.deciding is None


def test_a_statement_allows_what_it_covers_and_nothing_else() -> None:
    given_ = [policy(("allow", "fs:Read*", LAKE))]
    assert may(given_)
    assert not may(given_, action="fs:WriteObject")
    assert not may(given_, arn=f"{LAKE}2")


def test_deny_wins_wherever_it_stands() -> None:
    allow, deny = policy(("allow", "fs:*", "*")), policy(("deny", "fs:ReadRepository", LAKE), name="no")
    assert not may([allow, deny])
    assert not may([deny, allow])
    assert not may([policy(("deny", "fs:*", "*"), ("allow", "fs:*", "*"))])


def test_the_verdict_names_the_statement_that_decided() -> None:
    yes = evaluate([policy(("allow", "fs:List*", "*"), ("allow", "fs:Read*", "*"))], "fs:ReadRepository", LAKE, "olga")
    assert str(yes.deciding) == "allow by statement 2 of policy 'p'"
    no = evaluate([deny_everything("broken")], "fs:ReadRepository", LAKE, "olga")
    assert str(no.deciding) == "deny by statement 1 of policy 'broken'"


def test_a_need_on_everything_is_met_only_by_a_statement_on_everything() -> None:
    assert may([policy(("allow", "fs:ListRepositories", "*"))], "fs:ListRepositories", "*")
    assert not may([policy(("allow", "fs:ListRepositories", "arn:lakefs:fs:::*"))], "fs:ListRepositories", "*")


def test_user_stands_for_who_asks() -> None:
    own = [policy(("allow", "auth:*", "arn:lakefs:auth:::user/${user}"))]
    assert may(own, "auth:ReadCredentials", "arn:lakefs:auth:::user/olga")
    assert not may(own, "auth:ReadCredentials", "arn:lakefs:auth:::user/tom")


def test_a_wildcard_in_a_name_is_just_a_character() -> None:
    own = [policy(("allow", "auth:*", "arn:lakefs:auth:::user/${user}"))]
    assert not may(own, "auth:ReadCredentials", "arn:lakefs:auth:::user/tom", username="*")
    assert may(own, "auth:ReadCredentials", "arn:lakefs:auth:::user/*", username="*")


# --- matching ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "arn", "fits"),
    [
        (LAKE, LAKE, True),
        ("*", "no arn", True),
        ("arn:lakefs:fs:::repository/*", f"{LAKE}/branch/main", True),
        ("arn:lakefs:fs:::repository/l?ke", LAKE, True),
        ("arn:lakefs:fs:::repository/l?ke", "arn:lakefs:fs:::repository/lke", False),
        (LAKE, "arn:lakefs:fs:::repository/*", False),
        (LAKE, f"{LAKE}/branch/main", False),
        (LAKE, "arn:lakefs:fs:::repository/LAKE", False),
        (LAKE, "arn:lakefs:fs:us-east-1::repository/lake", True),
        (LAKE, "arn:lakefs:fs::acme:repository/lake", False),
        (LAKE, "arn:lakefs:auth:::repository/lake", False),
        ("arn:lakefs:fs:::namespace/s3://bucket/*", "arn:lakefs:fs:::namespace/s3://bucket/a:b", True),
        ("arn:lakefs:repo", "arn:lakefs:repo", False),
        ("arn:aws:fs:::x", "arn:aws:fs:::x", False),
        ("arn:lakefs:*:::repository/lake", LAKE, False),
    ],
)
def test_resources_match_as_in_lakefs(pattern: str, arn: str, fits: bool) -> None:
    assert resource_match(pattern, arn) is fits


def test_a_pattern_of_many_stars_is_not_slow() -> None:
    start = time.perf_counter()
    assert not wildcard_match("*a" * 60 + "b", "a" * 4000)
    assert time.perf_counter() - start < 2


def brute_match(pattern: str, text: str) -> bool:
    """The rule read aloud, one character at a time."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return brute_match(pattern[1:], text) or (bool(text) and brute_match(pattern, text[1:]))
    return bool(text) and pattern[0] in ("?", text[0]) and brute_match(pattern[1:], text[1:])


def brute_covers(resource: str, arn: str, username: str) -> bool:
    if resource == "*":
        return True
    ours, theirs = resource.split(":", 5), arn.split(":", 5)
    if len(theirs) < 6 or any(ours[field] != theirs[field] for field in (0, 1, 2, 4)):
        return False
    return brute_match(ours[5].replace("${user}", username), theirs[5])


def brute_allowed(policies: list[Policy], action: str, arn: str, username: str) -> bool:
    effects = [
        statement.effect
        for one in policies
        for statement in one.statements
        for pattern in statement.actions
        for resource in statement.resources
        if brute_match(pattern, action) and brute_covers(resource, arn, username)
    ]
    return Effect.ALLOW in effects and Effect.DENY not in effects


ACTIONS = st.sampled_from(["fs:Read", "fs:ReadAll", "fs:Write", "auth:Read"])
ACTION_PATTERNS = ACTIONS | st.sampled_from(["fs:*", "fs:Read*", "*:Read", "fs:?ead", "auth:*", "*"])
TAILS = st.lists(st.sampled_from(["a", "b", "/", "olga", "tom", ":", "\n"]), min_size=1, max_size=5).map("".join)
TAIL_PATTERNS = st.lists(st.sampled_from(["a", "b", "/", "*", "?", "${user}", ":", "."]), min_size=1, max_size=6).map(
    "".join
)
HEADS = st.sampled_from(["arn:lakefs:fs:::", "arn:lakefs:auth:::", "arn:lakefs:fs:x::", "arn:lakefs:fs::y:"])
ARNS = st.builds(str.__add__, HEADS, TAILS) | st.just("*")
RESOURCES = st.builds(str.__add__, HEADS, TAIL_PATTERNS) | st.just("*")
STATEMENTS = st.builds(
    Statement,
    st.sampled_from(Effect),
    st.lists(ACTION_PATTERNS, min_size=1, max_size=3).map(tuple),
    st.lists(RESOURCES, min_size=1, max_size=3).map(tuple),
)
POLICIES = st.lists(
    st.builds(Policy, st.just("p"), st.lists(STATEMENTS, min_size=1, max_size=3).map(tuple)), max_size=3
)


@given(POLICIES, ACTIONS, ARNS, st.sampled_from(["olga", "tom", "a"]))
def test_the_evaluator_says_what_the_rules_say_read_one_by_one(
    policies: list[Policy], action: str, arn: str, username: str
) -> None:
    assert evaluate(policies, action, arn, username).allowed == brute_allowed(policies, action, arn, username)


@given(st.text(alphabet="ab*?.\n", max_size=8), st.text(alphabet="ab*?.\n", max_size=8))
def test_wildcards_match_as_read_one_character_at_a_time(pattern: str, text: str) -> None:
    assert wildcard_match(pattern, text) == brute_match(pattern, text)


# --- reading ----------------------------------------------------------------------------------------------------------


def test_a_policy_is_read_in_lakefs_form() -> None:
    read = parse_policy(document(resource="*"))
    assert read == Policy("p", (Statement(Effect.ALLOW, ("fs:ReadRepository",), ("*",)),))


def test_name_may_stand_for_id_but_not_beside_another() -> None:
    statement = document()["statement"]
    assert parse_policy({"name": "n", "statement": statement}).name == "n"
    with pytest.raises(Invalid, match="another name"):
        parse_policy({"id": "p", "name": "n", "statement": statement})


@pytest.mark.parametrize("write", [json.dumps, list])
def test_several_resources_are_a_list_or_text_that_holds_one(write: Any) -> None:
    resources = [LAKE, f"{LAKE}/*"]
    assert parse_policy(document(resource=write(resources))).statements[0].resources == tuple(resources)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"effect": "Allow"}, "effect of statement 1 must be 'allow' or 'deny', not \"Allow\""),
        ({"effect": ["allow"]}, "effect of statement 1 must be"),
        ({"effect": None}, "statement 1 has no effect"),
        ({"action": "fs:ReadRepository"}, "action of statement 1 must be a list"),
        ({"action": []}, "action of statement 1 must be a list with at least one item"),
        ({"action": ["*"]}, "action of statement 1: '[*]' is not an action"),
        ({"action": ["s3:GetObject"]}, "'s3:GetObject' is not an action.*services are auth, branches"),
        ({"action": ["fs:Read:Object"]}, "is not an action"),
        ({"action": ["fs:ReadObject\n"]}, "is not an action"),
        ({"action": [7]}, "action of statement 1 must be text"),
        ({"resource": ""}, "resource of statement 1 must be text"),
        ({"resource": []}, "resource of statement 1 must be a list with at least one"),
        ({"resource": "[not json"}, "begins like a JSON list but is not one"),
        ({"resource": "repository/lake"}, "is not an ARN"),
        ({"resource": "arn:lakefs:*:::x"}, "wildcard before its last field"),
        ({"resource": "arn:lakefs:fs:::repository/{mirrorId}"}, "still has the placeholder {mirrorId}"),
        ({"resource": "arn:lakefs:auth:::user/${username}"}, "unknown variable"),
        ({"resource": "x" * 3000}, "longer than"),
        ({"condition": {"IpAddress": {}}}, "statement 1 has an unknown field 'condition'"),
    ],
)
def test_what_is_wrong_with_a_statement_is_said_with_its_number(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        parse_policy(document(**changes))


def test_the_number_is_that_of_the_statement() -> None:
    whole = document()
    whole["statement"] += document(effect="maybe")["statement"]
    with pytest.raises(Invalid, match="effect of statement 2") as caught:
        parse_policy(whole)
    assert caught.value.field == "effect of statement 2"


@pytest.mark.parametrize(
    "whole", [None, [], "p", {}, {"id": "p"}, {"id": "p", "statement": {}}, {"id": "a b"}, {"x": 1}]
)
def test_what_is_no_policy_is_refused(whole: Any) -> None:
    with pytest.raises(Invalid):
        parse_policy(whole)


def test_broken_json_is_located() -> None:
    with pytest.raises(Invalid, match="line 2, column 2"):
        parse_json('{"id": "p",\n "stat: 1}')
    with pytest.raises(Invalid):
        parse_json("[" * 100_000)


@given(st.recursive(st.none() | st.text(max_size=5) | st.integers(), lambda deeper: st.lists(deeper, max_size=3)))
def test_no_value_makes_the_reader_fail_otherwise_than_by_invalid(value: Any) -> None:
    for name in ("effect", "action", "resource"):
        try:
            parse_policy(document(**{name: value}))
        except Invalid:
            continue


def test_a_namespace_is_the_same_with_and_without_its_slash() -> None:
    assert namespace_arn("s3://bucket/lake/") == namespace_arn("s3://bucket/lake")
