"""Diff of two commits: right for any two lists of entries, and no wider than the change."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from graveler.diff import ChangeKind, diff, diff_ranges
from graveler.entries import Entry
from graveler.metarange import RangeRef, read_metarange
from graveler.ranges import read_range, write_ranges
from graveler.splitting import SplitRule
from tests.graveler.recorded import bytes_of, commits_of
from tests.graveler.strategies import entries, sorted_entries


class Shelf:
    """A storage namespace in memory that counts what is read from it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.opened: list[str] = []

    def put(self, side: list[Entry], ragged: int) -> list[RangeRef]:
        written = list(write_ranges(side, SplitRule(raggedness=ragged)))
        self.files |= {part.id: part.data for part in written}
        return [part.ref for part in written]

    def open(self, ref: RangeRef) -> list[Entry]:
        self.opened.append(ref.id)
        return list(read_range(self.files[ref.id], expected_id=ref.id))


@st.composite
def two_sides(draw: st.DrawFn) -> tuple[list[Entry], list[Entry]]:
    """A commit and another one that keeps, drops, changes and adds entries."""
    before = draw(sorted_entries(min_size=0, max_size=40))
    kept = [draw(st.one_of(st.just(entry), entries(entry.path), st.none())) for entry in before]
    taken = {entry.path for entry in before}
    added = [entry for entry in draw(sorted_entries(min_size=0, max_size=5)) if entry.path not in taken]
    after = sorted([*(entry for entry in kept if entry is not None), *added], key=lambda entry: entry.path)
    return before, after


@given(two_sides(), st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_the_diff_is_that_of_the_plain_lists_wherever_ranges_are_cut(
    sides: tuple[list[Entry], list[Entry]], ragged_a: int, ragged_b: int
) -> None:
    before, after = sides
    shelf = Shelf()
    changes = list(diff(shelf.put(before, ragged_a), shelf.put(after, ragged_b), shelf.open))
    a, b = ({entry.path: entry for entry in side} for side in sides)
    expected = [(path, a.get(path), b.get(path)) for path in sorted(a | b) if a.get(path) != b.get(path)]
    assert [(change.path, change.before, change.after) for change in changes] == expected


def test_common_ranges_are_never_opened() -> None:
    side = [Entry(b"%05d" % n, "a", n, "e") for n in range(2000)]
    shelf = Shelf()
    before = shelf.put(side, 50)
    after = shelf.put([*side[:1000], replace(side[1000], size=7), *side[1001:]], 50)
    (change,) = diff(before, after, shelf.open)
    assert (change.kind, change.path) == (ChangeKind.CHANGED, b"01000")
    assert len(before) > 20
    assert len(shelf.opened) == 2


def test_equal_commits_differ_in_nothing() -> None:
    shelf = Shelf()
    refs = shelf.put([Entry(b"a", "a", 1, "e")], 1)
    assert not diff_ranges(refs, refs)
    assert list(diff(refs, refs, shelf.open)) == []


def test_an_object_written_anew_with_the_same_content_is_a_change() -> None:
    shelf = Shelf()
    old = Entry(b"a", "data/1", 1, "e")
    (change,) = diff(shelf.put([old], 1), shelf.put([replace(old, address="data/2")], 1), shelf.open)
    assert change.kind is ChangeKind.CHANGED


def test_recorded_commits_of_the_lake_tell_what_they_did() -> None:
    def ranges_of(commit_id: str) -> list[RangeRef]:
        metarange = by_id[commit_id]["meta_range_id"]
        return read_metarange(bytes_of("lake", metarange), expected_id=metarange) if metarange else []

    by_id = {commit["id"]: commit for commit in commits_of("lake")}
    told = {}
    for commit in by_id.values():
        if commit["parents"] and not commit["metadata"].get(".lakefs.merge.strategy"):
            changes = diff(
                ranges_of(commit["parents"][0]),
                ranges_of(commit["id"]),
                lambda ref: read_range(bytes_of("lake", ref.id)),
            )
            told[commit["message"]] = [(change.kind.value, change.path.decode()) for change in changes]
    assert told["on dev"] == [("removed", "empty"), ("added", "events/2026-01-06/p.csv")]
    assert all(kind == "added" for kind, _ in told["first"])
