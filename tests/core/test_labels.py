"""Which labels can be, and which patterns they fit."""

from __future__ import annotations

import pytest

from core import labels
from core.errors import Invalid

SALES = {"team": "sales", "tier": "gold", "old": ""}


@pytest.mark.parametrize(
    ("patterns", "fits"),
    [
        ([], True),
        (["team=sales"], True),
        (["team=s*"], True),
        (["team=ops"], False),
        (["team=ops", "team=sales"], True),
        (["team=sales", "tier=gold"], True),
        (["team=sales", "tier=silver"], False),
        (["tier"], True),
        (["old"], True),
        (["old="], True),
        (["team="], False),
        (["owner"], False),
        (["TEAM=sales"], False),
    ],
)
def test_of_the_same_key_any_and_of_different_ones_all_have_to_fit(patterns: list[str], fits: bool) -> None:
    assert labels.fit(SALES, patterns) is fits


def test_without_labels_only_a_rule_without_labels_fits() -> None:
    assert labels.fit({}, []) and not labels.fit({}, ["team"])


@pytest.mark.parametrize(
    "bad",
    [
        {"Team": "x"},
        {"": "x"},
        {"1a": "x"},
        {"a b": "x"},
        {"a" * 64: "x"},
        {"a": "x" * 64},
        {"a": " x"},
        {"a": "x\ny"},
        {"a": "x\0"},
        {"a": "=x"},
        {f"k{n}": "x" for n in range(21)},
    ],
)
def test_what_can_not_be_is_refused(bad: dict[str, str]) -> None:
    with pytest.raises(Invalid) as refused:
        labels.check(bad)
    assert refused.value.field == "labels"


def test_they_are_typed_as_key_and_value() -> None:
    assert labels.parse(["team=sales", " tier = gold ", "old"]) == {"team": "sales", "tier": "gold", "old": ""}
    assert labels.words(SALES) == ["old", "team=sales", "tier=gold"]
    assert labels.parse(labels.words(SALES)) == SALES
    for twice in (["a=1", "a=2"], ["a", "a"]):
        with pytest.raises(Invalid):
            labels.parse(twice)
    with pytest.raises(Invalid):
        labels.of({"team": 7})


@pytest.mark.parametrize(("pattern", "fine"), [("team=s*", True), ("team", True), ("=x", False), ("Te*=x", False)])
def test_a_pattern_has_a_key(pattern: str, fine: bool) -> None:
    assert (labels.pattern_problem(pattern) == "") is fine
