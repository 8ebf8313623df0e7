"""What a look at a source's branches means."""

from __future__ import annotations

import pytest

from core import sensing
from core.errors import Corrupt
from core.graph import between, missing_parents, parents_first
from core.types import Commit

PARENTS = {"A": (), "B": ("A",), "C": ("B",), "X": ("A",), "M": ("C", "X")}


def commit(name: str, version: int = 1) -> Commit:
    return Commit(name, PARENTS[name], "c", "m", 0, "", version=version)


def main_parent(name: str) -> str:
    return commit(name).main_parent


def test_parents_stand_before_their_children_whatever_the_order_given() -> None:
    given = {name: commit(name) for name in ("M", "X", "C", "B", "A")}
    order = [c.id for c in parents_first(given, lambda _: False)]
    assert all(order.index(p) < order.index(c) for c in given for p in PARENTS[c])


def test_a_parent_that_nobody_knows_is_an_error_of_the_source() -> None:
    with pytest.raises(Corrupt, match="names the parent B"):
        parents_first({"C": commit("C")}, lambda _: False)
    assert [c.id for c in parents_first({"C": commit("C")}, {"B"}.__contains__)] == ["C"]


def test_records_in_a_circle_are_refused() -> None:
    circle = {"P": Commit("P", ("Q",), "", "", 0, ""), "Q": Commit("Q", ("P",), "", "", 0, "")}
    with pytest.raises(Corrupt, match="circle"):
        parents_first(circle, lambda _: False)


def test_missing_parents_are_the_history_to_fetch_next() -> None:
    assert missing_parents({"M": commit("M"), "C": commit("C")}, {"B"}) == {"X"}


def test_a_fast_forward_adds_the_first_parent_chain() -> None:
    assert between("M", "A", main_parent) == ["B", "C"]
    assert sensing.describe_move("main", "M", "A", main_parent).candidates == (("B", True), ("C", True), ("M", True))


def test_the_second_parent_of_a_merge_is_no_candidate() -> None:
    assert between("M", "X", main_parent) is None
    assert sensing.describe_move("x", "M", "X", main_parent).candidates == (("M", False),)


def test_a_first_sight_adds_the_head_alone() -> None:
    assert sensing.describe_move("new", "M", "", main_parent).candidates == (("M", True),)


def test_a_head_that_is_seen_again_is_no_move() -> None:
    assert sensing.describe_move("main", "M", "M", main_parent).candidates == (("M", True),)


def test_in_records_of_version_0_the_main_parent_is_the_last() -> None:
    assert commit("M", version=0).main_parent == "X"


def test_a_look_without_the_default_branch_is_not_valid() -> None:
    assert not sensing.is_valid_look({}, "main")
    assert not sensing.is_valid_look({"dev": "A"}, "main")
    assert sensing.is_valid_look({"main": "A"}, "main")


def test_a_branch_is_gone_after_two_looks_a_minute_apart() -> None:
    assert not sensing.is_gone(looks=1, seconds=500)
    assert not sensing.is_gone(looks=5, seconds=59)
    assert sensing.is_gone(looks=2, seconds=60)
