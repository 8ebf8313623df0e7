"""What is planned for the units of any commits: every key on which they do not all agree, and nothing else."""

from __future__ import annotations

from itertools import chain

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from core.exporting.unit_planning import plan_units
from graveler.entries import Entry
from graveler.metarange import RangeRef
from graveler.ranges import read_range_columns, write_ranges
from graveler.splitting import SplitRule
from spark_jobs.check.settings import StoreLocation
from spark_jobs.export.plan import plan_unit
from spark_jobs.export.settings import ExportSettings
from tests.graveler.strategies import entries, sorted_entries

SETTINGS = ExportSettings(StoreLocation("s3://lake/repo/"), StoreLocation("s3://out"))


class Shelf:
    """Ranges in memory."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def put(self, side: list[Entry], ragged: int) -> list[RangeRef]:
        written = list(write_ranges(side, SplitRule(raggedness=ragged)))
        self.files |= {part.id: part.data for part in written}
        return [part.ref for part in written]

    def read(self, range_id: str) -> pa.RecordBatch:
        return read_range_columns(self.files[range_id], expected_id=range_id, metadata=True)


@st.composite
def commits(draw: st.DrawFn) -> list[list[Entry]]:
    """A target and some commits that keep, drop, change and add entries."""
    first = draw(sorted_entries(min_size=0, max_size=25))
    sides = [first]
    for _ in range(draw(st.integers(1, 3))):
        kept = [draw(st.one_of(st.just(one), st.just(one), entries(one.path), st.none())) for one in first]
        added = draw(sorted_entries(min_size=0, max_size=4))
        taken = {one.path: one for one in [*added, *(one for one in kept if one)]}
        sides.append([taken[path] for path in sorted(taken)])
    return sides


def told(entry: Entry | None) -> tuple[object, ...] | None:
    return entry and (entry.size, entry.etag, dict(entry.metadata), entry.content_type)


@given(commits(), st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_every_key_is_planned_on_which_not_all_agree(sides: list[list[Entry]], ragged: int, other: int) -> None:
    shelf = Shelf()
    refs = [shelf.put(side, ragged if number < 2 else other) for number, side in enumerate(sides)]
    plans = [plan_unit(unit, shelf, SETTINGS) for unit in plan_units(refs[0], refs[1:])]
    target, *others = ({one.path: one for one in side} for side in sides)
    differing = [
        path
        for path in sorted({*chain(target, *others)})
        if any(told(tree.get(path)) != told(target.get(path)) for tree in others)
    ]
    assert [path for plan in plans for path in plan.copies.column("path").to_pylist()] == [
        path for path in differing if path in target
    ]
    assert [path for plan in plans for path in plan.deletes.to_pylist()] == [
        path for path in differing if path not in target
    ]
    for plan in plans:
        for row in plan.copies.to_pylist():
            one = target[row["path"]]
            assert row["uri"] == (f"s3://lake/repo/{one.address}" if one.relative else one.address)
            assert (row["size"], row["etag"], dict(row["metadata"]), row["content_type"]) == told(one)


def test_an_entry_that_is_only_described_anew_is_planned_and_marked() -> None:
    shelf = Shelf()
    before = [Entry(b"a", "data/1", 1, "e"), Entry(b"b", "data/2", 2, "f"), Entry(b"c", "data/3", 3, "g")]
    after = [
        Entry(b"a", "data/9", 1, "e"),
        Entry(b"b", "data/2", 2, "f", content_type="text/csv"),
        Entry(b"c", "data/4", 4, "h"),
    ]
    (unit,) = plan_units(shelf.put(after, 1000), [shelf.put(before, 1000)])
    plan = plan_unit(unit, shelf, SETTINGS)
    assert [(row["path"], row["renewed"]) for row in plan.copies.to_pylist()] == [(b"b", True), (b"c", False)]
