"""The branch's own line: by main parents, as far as the log goes."""

from __future__ import annotations

import pytest

from core.exporting.branch_line import line_between
from core.types import Commit

PARENTS = {"d": ("c", "x"), "x": ("a",), "c": ("b",), "b": ("a",), "a": ()}


def log(ids: str) -> list[Commit]:
    return [Commit(one, PARENTS[one], "", "", 0, "") for one in ids]


@pytest.mark.parametrize(
    ("ids", "head", "base", "found", "whole"),
    [
        ("dxcba", "d", "a", "dcb", True),
        ("dxcba", "d", "d", "", True),
        ("dxc", "d", "a", "dc", False),
        ("", "d", "a", "", False),
    ],
)
def test_what_was_merged_is_no_commit_of_the_line(ids: str, head: str, base: str, found: str, whole: bool) -> None:
    line = line_between(log(ids), head, base)
    assert line is not None and ("".join(one.id for one in line.commits), line.whole) == (found, whole)


def test_a_branch_that_was_moved_away_is_not_behind_by_any_number() -> None:
    assert line_between(log("dxcba"), "d", "x") is None
