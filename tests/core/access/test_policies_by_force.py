"""The evaluator against its rules as they are written, read by trying everything."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from core.access.policies import PART_OF, Effect, Policy, Statement, evaluate

USER = "a*"
ACTIONS = ["fs:A", "fs:AB", "auth:A", *PART_OF, *PART_OF.values()]
PATTERNS = ["*", "fs:*", "fs:?", "fs:A*", "*:A", "fs:*Mirror*", *ACTIONS]
RESTS = st.text("ab/*?:", min_size=1, max_size=5) | st.just("${user}") | st.just("a/${user}")


def fits(pattern: str, text: str) -> bool:
    """Whether `*` (any run) and `?` (any one) make the text; in lists, a literal is a pair."""
    return fit([*pattern], text)


def fit(signs: list[str], text: str) -> bool:
    if not signs:
        return not text
    first, rest = signs[0], signs[1:]
    if first == "*":
        return any(fit(rest, text[cut:]) for cut in range(len(text) + 1))
    return bool(text) and (first == "?" or first == "=" + text[0] or first == text[0]) and fit(rest, text[1:])


def reaches(resource: str, arn: str) -> bool:
    """`*` is all; else service and account are equal, and the rest fits, where a name's own signs are just letters."""
    if resource == "*":
        return True
    if not arn.startswith("arn:lakefs:"):
        return False
    ours, theirs = resource.split(":", 5), arn.split(":", 5)
    signs: list[str] = []
    for number, piece in enumerate(ours[5].split("${user}")):
        signs += ["=" + sign for sign in USER] if number else []
        signs += piece
    return (ours[2], ours[4]) == (theirs[2], theirs[4]) and fit(signs, theirs[5])


def plainly(policies: list[Policy], action: str, arn: str) -> tuple[bool, bool]:
    """Whether one allows it, whether one denies it."""
    effects = {
        one.effect
        for policy in policies
        for one in policy.statements
        if any(fits(pattern, action) for pattern in one.actions) and any(reaches(each, arn) for each in one.resources)
    }
    return Effect.ALLOW in effects, Effect.DENY in effects


def may(policies: list[Policy], action: str, arn: str) -> bool:
    allowed, refused = plainly(policies, action, arn)
    if action in PART_OF:
        by_whole, whole_refused = plainly(policies, PART_OF[action], arn)
        allowed, refused = allowed or by_whole, refused or whole_refused
    return allowed and not refused


def some(one: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(one, min_size=1, max_size=2).map(tuple)


ARNS = st.builds(
    "arn:lakefs:{}:{}:{}:{}".format, st.sampled_from(["fs", "auth"]), st.just(""), st.sampled_from(["", "1"]), RESTS
)
STATEMENTS = st.builds(Statement, st.sampled_from(Effect), some(st.sampled_from(PATTERNS)), some(ARNS | st.just("*")))
POLICIES = st.lists(st.builds(Policy, st.just("P"), st.lists(STATEMENTS, max_size=3).map(tuple)), max_size=3)
ASKED = st.builds(
    "arn:lakefs:{}:{}:{}:{}".format,
    st.sampled_from(["fs", "auth"]),
    st.sampled_from(["", "us"]),
    st.sampled_from(["", "1"]),
    st.text("ab/*:", min_size=1, max_size=5),
)


@settings(max_examples=600, derandomize=True, database=None)
@given(POLICIES, st.sampled_from(ACTIONS), ASKED | st.just("*"))
def test_the_evaluator_says_what_the_rules_say(policies: list[Policy], action: str, arn: str) -> None:
    assert evaluate(policies, action, arn, USER).allowed == may(policies, action, arn)


def test_fifty_policies_of_fifty_statements_are_read_in_no_time() -> None:
    statement = Statement(Effect.ALLOW, ("fs:Read*", "fs:List*"), ("arn:lakefs:fs:::repository/x*/branch/*",))
    policies = [Policy(f"P{number}", (statement,) * 50) for number in range(50)]
    began = time.perf_counter()
    for _ in range(10):
        assert not evaluate(policies, "fs:ReadObject", "arn:lakefs:fs:::repository/lake/object/a", "tom").allowed
    took = (time.perf_counter() - began) / 10
    assert took < 0.5
