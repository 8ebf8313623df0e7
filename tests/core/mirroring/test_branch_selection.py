"""Which branches does a mirror follow?"""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Invalid
from core.mirroring.branch_selection import LONGEST_GLOB, MOST_GLOBS, Selection, check_selection

NAMES = st.text("abAB/-_.[]*?!", max_size=8)
GLOBS = st.lists(NAMES, max_size=3).map(tuple)


def plain_match(glob: str, name: str) -> bool:
    """A second, obvious implementation for globs without brackets."""
    if not glob:
        return not name
    if glob[0] == "*":
        return any(plain_match(glob[1:], name[cut:]) for cut in range(len(name) + 1))
    return bool(name) and glob[0] in ("?", name[0]) and plain_match(glob[1:], name[1:])


@given(st.text("abA/*?", max_size=6), st.text("abA/", max_size=6))
def test_stars_and_question_marks_match_as_everybody_expects(glob: str, name: str) -> None:
    assert (name in Selection("the default", (glob,))) == plain_match(glob, name)


@given(GLOBS, GLOBS, NAMES)
def test_a_branch_is_selected_by_any_glob_unless_another_excludes_it(
    include: tuple[str, ...], exclude: tuple[str, ...], name: str
) -> None:
    expected = any(fnmatchcase(name, glob) for glob in include) and not any(fnmatchcase(name, g) for g in exclude)
    assert (name in Selection("the default", include, exclude)) == expected


@given(GLOBS, GLOBS, NAMES)
def test_the_default_branch_is_always_selected(include: tuple[str, ...], exclude: tuple[str, ...], name: str) -> None:
    assert name in Selection(name, include, exclude)


@given(GLOBS, GLOBS, NAMES)
def test_what_follows_everything_leaves_nothing_out(
    include: tuple[str, ...], exclude: tuple[str, ...], name: str
) -> None:
    chosen = Selection("main", include, exclude)
    assert not chosen.everything or name in chosen


@pytest.mark.parametrize(
    ("glob", "matches", "others"),
    [
        ("release*", ["release", "release-1", "release/2024/q4"], ["Release", "a-release"]),
        ("team/*", ["team/a", "team/a/b", "team/"], ["team", "steam/a"]),
        ("v?", ["v1", "v/"], ["v", "v10"]),
        ("v[0-9]", ["v1"], ["va", "v", "V1"]),
        ("v[!0-9]", ["va"], ["v1"]),
        ("[z-a]", [], ["m", "z", ""]),
        ("a.b", ["a.b"], ["axb"]),
        ("x[", ["x["], ["x"]),
    ],
)
def test_globs(glob: str, matches: list[str], others: list[str]) -> None:
    chosen = Selection("main", (glob,))
    assert [name for name in matches + others if name in chosen] == matches


def test_without_any_glob_only_the_default_branch_is_selected() -> None:
    chosen = Selection("main", ())
    assert [name for name in ("main", "dev") if name in chosen] == ["main"]


def test_globs_that_match_nothing_now_are_told_and_no_error() -> None:
    chosen = Selection("main", ("*", "release-*"), ("tmp-*", "ma*"))
    check_selection(chosen)
    assert chosen.warnings(["main", "dev"]) == [
        "include: 'release-*' matches no branch now",
        "exclude: 'tmp-*' matches no branch now",
        "exclude matches the default branch main, which is mirrored all the same",
    ]
    assert Selection("main").warnings(["main"]) == []


def test_the_default_branch_can_not_be_excluded_by_its_name() -> None:
    with pytest.raises(Invalid, match="default branch 'main' can't be excluded"):
        check_selection(Selection("main", ("*",), ("main",)))


@pytest.mark.parametrize("glob", ["", " a", "a\n", "a\0", "x" * (LONGEST_GLOB + 1)])
def test_what_is_no_glob_is_refused(glob: str) -> None:
    for chosen in (Selection("main", (glob,)), Selection("main", ("*",), (glob,))):
        with pytest.raises(Invalid) as refused:
            check_selection(chosen)
        assert refused.value.field == "branches"


def test_globs_are_not_any_number() -> None:
    check_selection(Selection("main", ("a",) * MOST_GLOBS))
    with pytest.raises(Invalid):
        check_selection(Selection("main", ("a",) * (MOST_GLOBS + 1)))


def test_a_glob_of_many_stars_is_matched_quickly() -> None:
    assert "a" * 200 not in Selection("main", ("*a" * 100 + "b",))
