"""Which objects may go after the source's garbage collection, and when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import sweeping
from core.sweeping import (
    APART,
    Candidate,
    Fate,
    Found,
    Standing,
    carried,
    due,
    fate_of,
    is_swept,
    named_below,
    stretches,
    why_ask,
)

WEEK = APART.total_seconds()
NOW = datetime(2026, 11, 26, tzinfo=UTC)
ONE = Candidate("data/a/x", 3, "e1", 0.0)
HERE = Standing(3, "e1", NOW - timedelta(days=30))


def by_address(candidates: list[Candidate]) -> dict[str, Candidate]:
    return {one.address: one for one in candidates}


# --- what is looked at ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["_lakefs/abc", "_lakefs/", "_lakemirror/mirror.json", "dummy", ""])
def test_metadata_and_files_of_lakefs_and_ours_are_never_swept(address: str) -> None:
    assert not is_swept(address)


@pytest.mark.parametrize("address", ["data/a/x", "x", "dummy2", "data/_lakefs/x", "_lakefs2"])
def test_all_else_below_a_namespace_is(address: str) -> None:
    assert is_swept(address)


def test_an_entry_with_a_uri_of_its_own_may_name_an_object_below_the_namespace() -> None:
    for namespace in ("s3://dst/lake", "s3://dst/lake/"):
        assert named_below(namespace, "s3://dst/lake/data/x") == {"data/x"}
        assert named_below(namespace, "s3a://dst/lake/data/x") == {"data/x"}
        assert named_below(namespace, "s3://dst/lake2/data/x") == set()
        assert named_below(namespace, "s3://dst/lake/") == set()


def test_such_a_uri_is_taken_as_it_is_written_and_as_lakefs_reads_it() -> None:
    assert named_below("s3://dst/lake", "s3://dst/lake/data/a%20b") == {"data/a%20b", "data/a b"}
    assert named_below("s3://dst/lake", "s3://dst/lake/data/a?b") == {"data/a?b", "data/a"}
    assert named_below("s3://dst/my lake", "s3://dst/my%20lake/data/x") == {"data/x"}


# --- two sweeps -----------------------------------------------------------------------------------------------------


def test_what_one_sweep_found_is_due_in_one_that_begins_a_week_after_it_ended() -> None:
    first = carried([Found("a", 1, "e")], {}, looked_at=1000.0)
    assert due(first, began_at=1000.0) == []
    second = carried([Found("a", 1, "e")], by_address(first), looked_at=2000.0 + WEEK)
    assert due(second, began_at=999.0 + WEEK) == []
    assert due(second, began_at=1000.0 + WEEK) == [Candidate("a", 1, "e", 1000.0)]


def test_what_a_sweep_in_between_did_not_find_begins_anew() -> None:
    first = carried([Found("a", 1, "e")], {}, 0.0)
    second = carried([], by_address(first), WEEK)
    third = carried([Found("a", 1, "e")], by_address(second), 2 * WEEK)
    assert due(third, 2 * WEEK) == []


def test_another_object_under_the_address_begins_anew() -> None:
    first = carried([Found("a", 1, "e")], {}, 0.0)
    assert carried([Found("a", 1, "other")], by_address(first), WEEK) == [Candidate("a", 1, "other", WEEK)]


def test_a_sweep_keeps_so_many_and_forgets_none_that_it_knew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "MOST_FOUND", 2)
    before = by_address(carried([Found("x", 1, "e"), Found("y", 1, "e")], {}, 0.0))
    after = carried([Found(name, 1, "e") for name in "abxy"], before, 5.0)
    assert [one.address for one in after] == ["x", "y"]
    assert [one.address for one in carried([Found(name, 1, "e") for name in "abx"], before, 5.0)] == ["a", "x"]


_SWEEPS = st.lists(st.tuples(st.floats(0, 3 * WEEK), st.floats(0, WEEK), st.sets(st.sampled_from("abc"))), max_size=6)


@given(_SWEEPS)
def test_what_is_due_was_found_by_a_sweep_a_week_ago_and_by_all_since(
    sweeps: list[tuple[float, float, set[str]]],
) -> None:
    """Each sweep: how long after the one before it began, how long it took, and what it found."""
    known: dict[str, Candidate] = {}
    past: list[tuple[float, set[str]]] = []
    now = 0.0
    for pause, took, found in sweeps:
        began = now + pause
        now = began + took
        candidates = carried([Found(name, 1, "e") for name in found], known, now)
        for one in due(candidates, began):
            assert any(
                ended + WEEK <= began and all(one.address in names for _, names in past[at:])
                for at, (ended, _) in enumerate(past)
            )
        assert {one.address for one in candidates} == found
        known = by_address(candidates)
        past.append((now, found))


# --- who is asked ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "listed", "asked"),
    [
        (0, 0, ""),
        (100, 1000, ""),
        (101, 1000, "101 of 1,000 objects would be deleted, more than 10 %"),
        (10_000, 10**6, ""),
        (10_001, 10**6, "10,001 objects would be deleted, more than 10,000"),
    ],
)
def test_more_than_a_share_or_a_number_is_asked_for(number: int, listed: int, asked: str) -> None:
    assert why_ask(number, listed, 10, 10_000) == asked


def test_a_share_of_nothing_asks_for_each_one_and_one_of_all_for_none() -> None:
    assert why_ask(1, 1000, 0, 10)
    assert not why_ask(1000, 1000, 100, 1000)


# --- at the act -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("here", "named", "at_source", "fate"),
    [
        (HERE, [], False, Fate.DELETE),
        (HERE, ["data/a/x"], False, Fate.NAMED),
        (HERE, [], True, Fate.AT_SOURCE),
        (None, [], False, Fate.GONE),
        (replace(HERE, etag="e2"), [], False, Fate.CHANGED),
        (replace(HERE, size=4), [], False, Fate.CHANGED),
        (replace(HERE, modified=NOW - APART + timedelta(seconds=1)), [], False, Fate.YOUNG),
        (replace(HERE, modified=NOW + timedelta(days=1)), [], False, Fate.YOUNG),
        (replace(HERE, modified=None), [], False, Fate.YOUNG),
        (replace(HERE, modified=NOW - APART), [], False, Fate.DELETE),
        (replace(HERE, locked=True), [], False, Fate.LOCKED),
    ],
)
def test_what_is_asked_anew_right_before_decides(
    here: Standing | None, named: list[str], at_source: bool, fate: Fate
) -> None:
    assert fate_of(ONE, here, named=named, at_source=at_source, now=NOW) is fate


@given(
    address=st.sampled_from(["data/a", "_lakefs/r", "_lakemirror/mirror.json", "dummy"]),
    named=st.booleans(),
    at_source=st.booleans(),
    here=st.one_of(
        st.none(),
        st.builds(
            Standing,
            size=st.integers(0, 1),
            etag=st.sampled_from(["e", "f"]),
            modified=st.one_of(st.none(), st.datetimes(timezones=st.just(UTC))),
            locked=st.booleans(),
        ),
    ),
)
def test_only_what_nothing_speaks_for_is_deleted(
    address: str, named: bool, at_source: bool, here: Standing | None
) -> None:
    one = Candidate(address, 1, "e", 0.0)
    fate = fate_of(one, here, named=[address] if named else [], at_source=at_source, now=NOW)
    speaks_for_it = named or at_source or not address.startswith("data/")
    if fate is Fate.DELETE:
        assert not speaks_for_it
        assert here is not None and (here.size, here.etag, here.locked) == (1, "e", False)
        assert here.modified is not None and here.modified <= NOW - APART


# --- stretches ------------------------------------------------------------------------------------------------------


@given(st.sets(st.text(max_size=4)), st.integers(1, 9), st.text(min_size=1, max_size=5))
def test_each_key_is_in_just_one_stretch(sample: set[str], number: int, key: str) -> None:
    cut = stretches(sample, number)
    assert 1 <= len(cut) <= number
    assert sum(after < key and (not until or key <= until) for after, until in cut) == 1
