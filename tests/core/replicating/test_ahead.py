"""Pages that are asked for ahead: the same ones, none twice, none behind the end of what is wanted."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Denied
from core.replicating.ahead import Ahead
from core.replicating.merging import Listing, Read, windows
from tests.core.replicating.test_merging import KEYS, OBJECTS, listing_of


class Serial:
    """Asks at once, in the order of the submissions; `asked`: after which keys."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, read: Read, after: str) -> Future[Listing]:
        self.asked.append(after)
        future: Future[Listing] = Future()
        try:
            future.set_result(read(after))
        except Exception as error:
            future.set_exception(error)
        return future


@given(source=OBJECTS, target=OBJECTS, size=st.integers(1, 4), after=KEYS, high=st.one_of(st.none(), KEYS))
def test_windows_are_the_same(
    source: dict[str, Any], target: dict[str, Any], size: int, after: str, high: str | None
) -> None:
    ours, theirs = listing_of(source, size), listing_of(target, 3)
    plain = list(windows(ours, {1: theirs}, after, high))
    submit = Serial()
    assert (
        list(windows(Ahead(ours, after, high, submit), {1: Ahead(theirs, after, high, submit)}, after, high)) == plain
    )


def test_no_page_is_asked_for_twice_or_behind_the_end() -> None:
    source = dict.fromkeys("abcdefgh", (1, "x"))
    submit = Serial()
    list(windows(Ahead(listing_of(source, 2), "", "f", submit), {}, "", "f"))
    assert submit.asked == ["", "b", "d"]


def test_the_next_page_is_on_its_way_before_somebody_asks() -> None:
    submit, source = Serial(), dict.fromkeys("abcd", (1, "x"))
    ahead = Ahead(listing_of(source, 1), "", None, submit)
    ahead("")
    assert submit.asked == ["", "a"]


def test_what_a_page_raises_is_raised_where_it_is_taken() -> None:
    def broken(after: str) -> Listing:
        raise Denied("no")

    with ThreadPoolExecutor(1) as pool, pytest.raises(Denied):
        Ahead(broken, "", None, pool.submit)("")
