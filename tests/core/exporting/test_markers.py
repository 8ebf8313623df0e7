"""Touched directories, the order of their markers, and what a failure keeps back: as by brute force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.exporting.markers import Failed, directory_of, is_marker, marker_of, marker_order, touched_directories

keys = st.text("ab/_é", max_size=8).map(str.encode)


def all_above(key: bytes) -> set[bytes]:
    """Every beginning of the key that ends with a slash, and the root."""
    return {b"", *(key[: at + 1] for at in range(len(key)) if key[at : at + 1] == b"/")}


@given(st.sets(keys, max_size=30))
@settings(max_examples=150)
def test_touched_directories_come_once_and_children_first(chosen: set[bytes]) -> None:
    found = list(touched_directories(sorted(chosen)))
    assert len(found) == len(set(found))
    assert set(found) == set().union(*map(all_above, chosen))
    for at, directory in enumerate(found):
        assert not any(later.startswith(directory) for later in found[at + 1 :])


@given(st.sets(keys, max_size=20), st.sets(keys, max_size=4))
@settings(max_examples=150)
def test_a_failure_keeps_back_its_directory_and_all_above(chosen: set[bytes], failing: set[bytes]) -> None:
    failed = Failed(map(directory_of, failing))
    for directory in touched_directories(sorted(chosen)):
        assert failed.below(directory) == any(directory in all_above(key) for key in failing)


@given(st.lists(keys.map(directory_of), max_size=20))
@settings(max_examples=100)
def test_markers_are_written_once_and_children_first(chosen: list[bytes]) -> None:
    ordered = marker_order(chosen)
    assert set(ordered) == set(chosen) and len(ordered) == len(set(chosen))
    for at, directory in enumerate(ordered):
        assert not any(later.startswith(directory) for later in ordered[at + 1 :])


def test_keys_are_taken_as_they_come_and_directories_told_once_they_are_over() -> None:
    taken = []

    def watched(chosen: Iterable[bytes]) -> Iterator[bytes]:
        for key in chosen:
            taken.append(key)
            yield key

    found = touched_directories(watched([b"a/1", b"a/2", b"b/1", b"c/1"]))
    assert next(found) == b"a/" and taken == [b"a/1", b"a/2", b"b/1"]
    assert list(found) == [b"b/", b"c/", b""]


@pytest.mark.parametrize(
    ("key", "directory"),
    [(b"x", b""), (b"a/x", b"a/"), (b"a/b/", b"a/b/"), (b"a//x", b"a//"), (b"/x", b"/"), (b"/", b"/"), (b"", b"")],
)
def test_a_directory_ends_with_its_slash(key: bytes, directory: bytes) -> None:
    assert directory_of(key) == directory


def test_no_keys_touch_nothing_and_any_key_touches_the_root() -> None:
    assert list(touched_directories([])) == []
    assert list(touched_directories([b"x"])) == [b""]


def test_a_users_own_key_may_stand_where_a_marker_would() -> None:
    assert marker_of(b"") == b"_lakefs_success" and marker_of(b"a/") == b"a/_lakefs_success"
    assert is_marker(b"_lakefs_success") and is_marker(b"a/_lakefs_success")
    assert not is_marker(b"a/my_lakefs_success") and not is_marker(b"_lakefs_success/x")
