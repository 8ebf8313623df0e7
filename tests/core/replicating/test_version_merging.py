"""Listings of versions side by side: whole chains in windows, wherever the pages end."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import RemoteFailure, Unreachable
from core.replicating.version_merging import ChainCursor, Read, VersionPage, windows
from core.replicating.versions import Chain, Version

Chains = Mapping[str, Chain]
chains = st.dictionaries(st.sampled_from("abcdefg"), st.integers(1, 5), max_size=7).map(
    lambda numbers: {
        key: [Version(f"{key}{n}", n, f"e{n}", n % 3 == 0) for n in range(number)] for key, number in numbers.items()
    }
)


def reader(bucket: Chains, size: int) -> Read:
    """A store with pages of so many versions."""

    def read(after: str, position: tuple[str, str] | None) -> VersionPage:
        rows = [(key, one) for key in sorted(bucket) if key > after for one in reversed(bucket[key])]
        at = 0
        if position is not None:
            at = next(n for n, (key, one) in enumerate(rows) if (key, one.id) == position) + 1
        some = rows[at : at + size]
        more = at + size < len(rows)
        return VersionPage(some, (some[-1][0], some[-1][1].id) if more else None)

    return read


@given(
    chains, chains, st.integers(1, 4), st.integers(1, 4), st.sampled_from(["", "b", "c"]), st.sampled_from([None, "e"])
)
def test_windows_hold_every_chain_whole_and_once(
    source: Chains, target: Chains, size: int, other: int, after: str, high: str | None
) -> None:
    seen: dict[str, Chain] = {}
    there: dict[str, Chain] = {}
    last, end = after, False
    for window in windows(reader(source, size), {1: reader(target, other)}, after, high):
        assert not end and not window.failed
        assert [item.key for item in window.items] == sorted(item.key for item in window.items)
        for item in window.items:
            assert item.key > last and item.key not in seen
            seen[item.key] = item.chain
        there |= window.there[1]
        last, end = max(last, window.last), window.end
    assert end
    inside = {key: chain for key, chain in source.items() if key > after and (high is None or key <= high)}
    assert seen == inside
    assert {key: there.get(key) for key in inside} == {key: target.get(key) for key in inside}


def test_a_window_that_reaches_the_end_of_its_stretch_says_so_though_there_is_more() -> None:
    source = {key: [Version("1")] for key in "abc"}
    found = list(windows(reader(source, 1), {}, "", "b"))
    assert [(window.last, window.end) for window in found][-1] == ("b", True)


def test_a_target_that_cannot_be_listed_is_left_out() -> None:
    def silent(after: str, position: tuple[str, str] | None) -> VersionPage:
        raise Unreachable("?")

    source = {"a": [Version("1")], "b": [Version("2")]}
    found = list(windows(reader(source, 1), {1: silent, 2: reader({}, 1)}, "", None))
    assert all(set(window.failed) == {1} and set(window.there) == {2} for window in found)


def test_what_is_out_of_order_or_leads_nowhere_is_refused() -> None:
    def odd(after: str, position: tuple[str, str] | None) -> VersionPage:
        return VersionPage([("b", Version("1")), ("a", Version("2"))], None)

    def endless(after: str, position: tuple[str, str] | None) -> VersionPage:
        return VersionPage([("a", Version("1"))], ("a", "1"))

    def empty(after: str, position: tuple[str, str] | None) -> VersionPage:
        return VersionPage([], ("a", "1"))

    for read in (odd, endless, empty):
        with pytest.raises(RemoteFailure):
            list(windows(read, {}, "", None))


def test_keys_up_to_the_one_that_was_named_are_left_out_whatever_the_store_lists() -> None:
    def generous(after: str, position: tuple[str, str] | None) -> VersionPage:
        return VersionPage([("a", Version("1")), ("b", Version("2"))], None)

    assert [key for key, _ in ChainCursor(generous, "a").pages()] == ["b"]
