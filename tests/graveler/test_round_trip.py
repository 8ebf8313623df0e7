"""Whatever is written is read back, by both readers, and cut where the rule says."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graveler import ranges
from graveler.columns import FULL_SCHEMA
from graveler.entries import AddressType, Entry, Timestamp
from graveler.metarange import RangeRef, read_metarange, write_metarange
from graveler.ranges import RangeFile, read_range, read_range_columns, write_range, write_ranges
from graveler.splitting import SplitRule
from graveler.sstable.reader import TWO_LEVEL_INDEX, open_table
from tests.graveler.strategies import sorted_entries

EXAMPLES = settings(max_examples=int(os.environ.get("LAKEMIRROR_EXAMPLES", "60")), deadline=None)


def numbered(count: int) -> list[Entry]:
    return [
        Entry(b"tables/day=%03d/part-%07d" % (n // 500, n), f"data/p/{n:x}", n, f"{n:032x}", Timestamp(n))
        for n in range(count)
    ]


@EXAMPLES
@given(sorted_entries())
def test_a_written_range_gives_its_entries_back(entries: list[Entry]) -> None:
    written = write_range(entries)
    assert list(read_range(written.data, expected_id=written.id)) == entries
    assert (written.min_key, written.max_key, written.count) == (entries[0].path, entries[-1].path, len(entries))


@EXAMPLES
@given(sorted_entries())
def test_columns_hold_what_the_entries_say(entries: list[Entry]) -> None:
    written = write_range(entries)
    found = read_range_columns(written.data, expected_id=written.id, metadata=True)
    found.validate(full=True)
    assert found.equals(ranges._columns_of(iter(entries), metadata=True))


@EXAMPLES
@given(sorted_entries(min_size=0), st.integers(1, 9), st.integers(200, 2000))
def test_ranges_follow_each_other_and_end_by_the_rule(entries: list[Entry], ragged: int, most: int) -> None:
    written = list(write_ranges(entries, SplitRule(max_size=most, raggedness=ragged)))
    assert [entry for part in written for entry in read_range(part.data, expected_id=part.id)] == entries
    for part in written[:-1]:
        assert fnv1a_64(part.max_key) % ragged == 0 or part.estimated_size >= most
    assert all(not _ends_early(part, ragged) for part in written)


def fnv1a_64(data: bytes) -> int:
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return state


def _ends_early(part: RangeFile, ragged: int) -> bool:
    *inner, _ = read_range(part.data)
    return any(fnv1a_64(entry.path) % ragged == 0 for entry in inner)


@EXAMPLES
@given(st.lists(st.binary(min_size=1, max_size=5), unique=True, max_size=30).map(sorted), st.integers(0, 1 << 40))
def test_a_written_metarange_gives_its_ranges_back(keys: list[bytes], size: int) -> None:
    refs = [RangeRef(f"{n:064x}", key, key, n + 1, size) for n, key in enumerate(keys)]
    written = write_metarange(refs)
    assert read_metarange(written.data, expected_id=written.id) == refs


def test_a_large_range_gets_a_two_level_index_and_is_read_by_the_fast_form(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = numbered(20_000)
    written = write_range(entries)
    properties = open_table(written.data).properties
    assert properties[b"rocksdb.block.based.table.index.type"][0] == TWO_LEVEL_INDEX
    expected = ranges._columns_of(iter(entries), metadata=True)
    monkeypatch.delattr(ranges, "_columns_of")
    assert read_range_columns(written.data, expected_id=written.id, metadata=True).equals(expected)


def test_columns_without_metadata_are_six() -> None:
    written = write_range(numbered(3))
    assert read_range_columns(written.data).schema.names == FULL_SCHEMA.names[:6]


def test_keys_too_long_for_the_fast_form_are_read_all_the_same() -> None:
    entries = [Entry(b"x" * 5000 + b"%03d" % n, "a", 1, "e") for n in range(40)]
    written = write_range(entries)
    assert list(read_range(written.data, expected_id=written.id)) == entries
    assert read_range_columns(written.data, expected_id=written.id).column("path").to_pylist() == [
        entry.path for entry in entries
    ]


def test_values_too_long_for_the_fast_form_are_read_all_the_same() -> None:
    entries = [Entry(b"%d" % n, "a" * 70_000, 1, "e", metadata={"k": "v" * 9000}) for n in range(3)]
    written = write_range(entries)
    assert list(read_range(written.data)) == entries
    assert read_range_columns(written.data, metadata=True).column("address")[2].as_py() == "a" * 70_000


def test_a_range_nears_twenty_mebibytes_at_most() -> None:
    entries = [Entry(b"%06d" % n, os.urandom(30_000).hex(), n, "e") for n in range(500)]
    first, *_ = write_ranges(entries)
    assert (20 << 20) <= len(first.data) < (20 << 20) + (1 << 18)


def test_the_order_of_metadata_keys_survives_since_the_id_covers_it() -> None:
    one = Entry(b"k", "a", 1, "e", metadata={"b": "1", "a": "2"})
    other = replace(one, metadata={"a": "2", "b": "1"})
    assert one.identity == other.identity
    written = write_range([one])
    assert written.id != write_range([other]).id
    assert write_range(read_range(written.data)).id == written.id


def test_an_address_of_the_early_days_is_relative_unless_it_has_a_scheme() -> None:
    early = Entry(b"k", "4e068d1a", 1, "e", address_type=AddressType.BY_PREFIX)
    assert early.relative
    assert not replace(early, address="s3://bucket/key").relative


@pytest.mark.parametrize("paths", [[b"b", b"a"], [b"a", b"a"]])
def test_a_writer_takes_paths_in_ascending_order_only(paths: list[bytes]) -> None:
    entries = [Entry(path, "a", 1, "e") for path in paths]
    with pytest.raises(ValueError, match="must ascend"):
        write_range(entries)
    with pytest.raises(ValueError, match="must ascend"):
        list(write_ranges(entries, SplitRule(raggedness=1)))


def test_a_metarange_takes_ranges_that_do_not_overlap_only() -> None:
    refs = [RangeRef("0" * 64, b"a", b"m", 1, 1), RangeRef("1" * 64, b"m", b"z", 1, 1)]
    with pytest.raises(ValueError, match="don't overlap"):
        write_metarange(refs)


def test_an_empty_metarange_is_a_file_too() -> None:
    written = write_metarange([])
    assert read_metarange(written.data, expected_id=written.id) == []
