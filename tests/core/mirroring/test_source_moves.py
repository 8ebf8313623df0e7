"""What a look at a source's branches means."""

from __future__ import annotations

from core.mirroring import source_moves
from core.mirroring.commit_graph import between
from core.types import Commit

PARENTS = {"A": (), "B": ("A",), "C": ("B",), "X": ("A",), "M": ("C", "X")}


def commit(name: str, version: int = 1) -> Commit:
    return Commit(name, PARENTS[name], "c", "m", 0, "", version=version)


def main_parent(name: str) -> str:
    return commit(name).main_parent


def test_a_fast_forward_adds_the_first_parent_chain() -> None:
    assert between("M", "A", main_parent) == ["B", "C"]
    moves = source_moves.describe_move("main", "M", "A", main_parent)
    assert moves.candidates == (("B", True), ("C", True), ("M", True))


def test_the_second_parent_of_a_merge_is_no_candidate() -> None:
    assert between("M", "X", main_parent) is None
    assert source_moves.describe_move("x", "M", "X", main_parent).candidates == (("M", False),)


def test_a_first_sight_adds_the_head_alone() -> None:
    assert source_moves.describe_move("new", "M", "", main_parent).candidates == (("M", True),)


def test_a_head_that_is_seen_again_is_no_move() -> None:
    assert source_moves.describe_move("main", "M", "M", main_parent).candidates == (("M", True),)


def test_in_records_of_version_0_the_main_parent_is_the_last() -> None:
    assert commit("M", version=0).main_parent == "X"


def test_a_chain_of_first_parents_is_picked_window_by_window() -> None:
    commits = [("M", "C"), ("X", "A"), ("C", "B"), ("B", "A"), ("A", "")]
    for size in range(1, 6):
        chain = source_moves.FirstParents("C")
        windows = [commits[start : start + size] for start in range(0, len(commits), size)]
        assert [picked for window in windows for picked in chain.pick(window)] == ["C", "B", "A"]
        assert chain.wanted == ""


def test_a_look_without_the_default_branch_is_not_valid() -> None:
    assert not source_moves.is_valid_look({}, "main")
    assert not source_moves.is_valid_look({"dev": "A"}, "main")
    assert source_moves.is_valid_look({"main": "A"}, "main")


def test_a_branch_is_gone_after_two_looks_a_minute_apart() -> None:
    assert not source_moves.is_gone(looks=1, seconds=500)
    assert not source_moves.is_gone(looks=5, seconds=59)
    assert source_moves.is_gone(looks=2, seconds=60)
