"""Listings side by side: whatever the pages, every key of the source is seen once, with what each target has there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Denied, RemoteFailure
from core.replicating.merging import Listed, Listing, Read, just_before, windows

KEYS = st.text(alphabet="ab/é\u00ff\ud7ff\U0001f600", min_size=1, max_size=3)
OBJECTS = st.dictionaries(KEYS, st.tuples(st.integers(0, 3), st.sampled_from("xyz")), max_size=14)


def listing_of(objects: Mapping[str, tuple[int, str]], at_once: int) -> Read:
    """A store that lists by the bytes of UTF-8, so many on a page."""

    def read(after: str) -> Listing:
        keys = [key for key in sorted(objects, key=str.encode) if key.encode() > after.encode()]
        return Listing([Listed(key, *objects[key]) for key in keys[:at_once]], len(keys) > at_once)

    return read


@given(
    source=OBJECTS,
    targets=st.lists(OBJECTS, min_size=1, max_size=3),
    sizes=st.lists(st.integers(1, 4), min_size=4, max_size=4),
    after=st.one_of(st.just(""), KEYS),
    high=st.one_of(st.none(), KEYS),
)
def test_each_key_is_seen_once_with_what_is_there(
    source: dict[str, Any], targets: list[dict[str, Any]], sizes: list[int], after: str, high: str | None
) -> None:
    reads = {number: listing_of(objects, sizes[number]) for number, objects in enumerate(targets)}
    found = list(windows(listing_of(source, sizes[3]), reads, after, high))
    wanted = [key for key in sorted(source, key=str.encode) if key > after and (high is None or key <= high)]
    assert [item.key for window in found for item in window.items] == wanted
    assert [window.end for window in found] == [False] * (len(found) - 1) + [True]
    for window in found:
        assert window.failed == {}
        assert all(item.key <= window.last for item in window.items)
        for number, objects in enumerate(targets):
            for item in window.items:
                assert window.there[number].get(item.key) == objects.get(item.key)


@given(source=OBJECTS, target=OBJECTS, stop=st.integers(0, 6), size=st.integers(1, 3))
def test_it_goes_on_strictly_after_where_it_was(
    source: dict[str, Any], target: dict[str, Any], stop: int, size: int
) -> None:
    """Also where the object at that place is gone by then."""
    seen: list[str] = []
    after, objects = "", dict(source)
    for window in windows(listing_of(objects, size), {0: listing_of(target, 2)}, "", None):
        seen += [item.key for item in window.items]
        after = window.last
        if len(seen) >= stop:
            break
    objects.pop(after, None)
    rest = windows(listing_of(objects, size), {0: listing_of(target, 2)}, after, None)
    seen += [item.key for window in rest for item in window.items]
    assert sorted(seen) == sorted(source) and len(set(seen)) == len(seen)


def test_a_target_that_cannot_be_listed_is_left_out_from_then_on() -> None:
    source = dict.fromkeys("abcdef", (1, "x"))

    def broken(after: str) -> Listing:
        if after >= "b":
            raise Denied("no")
        return listing_of(source, 1)(after)

    found = list(windows(listing_of(source, 2), {1: broken, 2: listing_of(source, 2)}, "", None))
    assert [sorted(window.there) for window in found] == [[1, 2], [2], [2]]
    assert [sorted(window.failed) for window in found] == [[], [1], [1]]
    assert [len(window.there[2]) for window in found] == [2, 2, 2]


def test_the_sources_own_errors_are_raised() -> None:
    def broken(after: str) -> Listing:
        raise Denied("no")

    with pytest.raises(Denied):
        list(windows(broken, {}, "", None))


@pytest.mark.parametrize("keys", [("b", "a"), ("a", "a")])
def test_a_store_that_lists_out_of_order_proves_nothing(keys: tuple[str, str]) -> None:
    def read(after: str) -> Listing:
        return Listing([Listed(key, 1, "x") for key in keys], False)

    with pytest.raises(RemoteFailure, match="out of order"):
        list(windows(read, {}, "", None))


def test_a_store_that_promises_more_and_gives_nothing_is_no_end_of_it() -> None:
    with pytest.raises(RemoteFailure, match="lists nothing"):
        list(windows(lambda after: Listing([], True), {}, "", None))


def test_a_folder_of_somebody_elses_is_not_listed_to_its_end() -> None:
    foreign = {f"b/{number:04}": (1, "y") for number in range(1000)}
    source = {"a": (1, "x"), "c/1": (1, "x"), "c/2": (1, "x")}
    asked: list[str] = []

    def read(after: str) -> Listing:
        asked.append(after)
        return listing_of(source | foreign, 10)(after)

    (window,) = windows(listing_of(source, 10), {1: read}, "", None)
    assert {item.key for item in window.items} <= window.there[1].keys()
    assert len(asked) <= 4


@given(KEYS, KEYS)
def test_next_to_nothing_lies_right_before_a_key(key: str, other: str) -> None:
    before = just_before(key)
    assert before < key and before.encode() < key.encode()
    if before < other < key:
        assert other.startswith(before)


def test_right_before_the_first_letter_behind_the_surrogates_there_are_none() -> None:
    assert just_before("a\ue000").encode() < "a\ue000".encode()
    assert just_before("a\x00") == "a"
    assert just_before("\U0001f600" * 256) == ""


def test_targets_may_be_read_side_by_side() -> None:
    called: list[int] = []

    def each(take: Any, cursors: Iterable[Any]) -> Iterable[None]:
        some = list(cursors)
        called.append(len(some))
        return map(take, some)

    source = dict.fromkeys("abc", (1, "x"))
    reads = {number: listing_of(source, 2) for number in range(3)}
    list(windows(listing_of(source, 2), reads, "", None, each))
    assert called == [3, 3]
