"""Commits keep the ranges that they do not touch, and read back what was written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graveler.entries import Entry
from graveler.splitting import LAKEFS_RULE, Splitter
from sandbox.lakefs.committed import Committed, FileCache
from sandbox.lakefs.errors import Refused
from tests.sandbox.memory_blobs import MemoryBlobs


def entry(path: bytes, version: int = 0) -> Entry:
    return Entry(path, f"data/p/{path.hex()}{version}", 10 + version, f"{version:032x}")


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture
def committed(blobs: MemoryBlobs) -> Committed:
    return Committed(blobs, "bucket", "lake", FileCache())


def numbered(count: int) -> list[Entry]:
    return [entry(b"k%06d" % n) for n in range(count)]


def boundary() -> int:
    """A number below a million after whose key lakeFS ends a range."""
    splitter = Splitter(LAKEFS_RULE)
    return next(n for n in range(1_000_000) if splitter.ends_after(b"k%06d" % n, 1))


def two_ranges(committed: Committed) -> str:
    """A metarange of two ranges, cut by lakeFS's rule."""
    cut = boundary()
    return committed.apply("", {e.path: e for e in (entry(b"k%06d" % n) for n in range(cut - 5, cut + 6))})


def test_a_change_leaves_the_other_range_as_it_is(committed: Committed, blobs: MemoryBlobs) -> None:
    before = two_ranges(committed)
    first, second = committed.ranges(before)
    blobs.written.clear()
    after = committed.apply(before, {second.max_key: entry(second.max_key, version=1)})
    assert committed.ranges(after)[0] == first
    assert committed.ranges(after)[1].id != second.id
    assert len(blobs.written) == 2  # one range, one metarange


def test_keys_after_the_last_range_become_a_range_of_their_own(committed: Committed) -> None:
    before = committed.apply("", {e.path: e for e in numbered(10)})
    after = committed.apply(before, {b"zz": entry(b"zz")})
    assert [ref.count for ref in committed.ranges(after)] == [10, 1]
    assert committed.ranges(after)[0] == committed.ranges(before)[0]


def test_a_key_between_ranges_goes_into_the_later_one(committed: Committed) -> None:
    before = two_ranges(committed)
    first, second = committed.ranges(before)
    after = committed.apply(before, {first.max_key + b"!": entry(first.max_key + b"!")})
    assert committed.ranges(after)[0] == first
    assert committed.ranges(after)[1].count == second.count + 1


def test_deleting_everything_leaves_a_metarange_without_ranges(committed: Committed) -> None:
    before = committed.apply("", {e.path: e for e in numbered(3)})
    after = committed.apply(before, dict.fromkeys([e.path for e in numbered(3)]))
    assert after
    assert list(committed.ranges(after)) == []


def test_what_changes_nothing_gives_the_same_metarange(committed: Committed) -> None:
    before = committed.apply("", {b"a": entry(b"a")})
    again = Entry(b"a", "data/p/elsewhere", 10, "0" * 32)
    assert committed.apply(before, {b"a": again, b"never": None}) == before


def test_the_cache_forgets_what_was_used_least_lately() -> None:
    cache = FileCache(most_records=10)
    for name, records in (("a", 4), ("b", 4)):
        cache.put((name,), name, records)
    assert cache.get(("a",)) == "a"
    cache.put(("c",), "c", 2)
    assert [cache.get((name,)) for name in "abc"] == ["a", None, "c"]


def test_a_missing_file_is_no_data_and_a_damaged_one_says_so(committed: Committed, blobs: MemoryBlobs) -> None:
    made = committed.apply("", {b"a": entry(b"a")})
    key = ("bucket", f"lake/_lakefs/{committed.ranges(made)[0].id}")
    whole = blobs.objects.pop(key)
    with pytest.raises(Refused, match="No data"):
        list(committed.scan(made))
    blobs.objects[key] = whole[:20] + bytes([whole[20] ^ 1]) + whole[21:]
    with pytest.raises(Refused, match="range"):
        list(committed.scan(made))
    blobs.objects[key] = whole
    assert [e.path for e in committed.scan(made)] == [b"a"]


paths = st.binary(min_size=1, max_size=3)
changes = st.dictionaries(paths, st.one_of(st.none(), st.integers(0, 3)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(changes, max_size=6))
def test_any_series_of_commits_reads_back_like_a_dictionary(series: list[dict[bytes, int | None]]) -> None:
    committed = Committed(MemoryBlobs(), "bucket", "", FileCache())
    model: dict[bytes, Entry] = {}
    metarange = ""
    for step in series:
        asked = {path: None if version is None else entry(path, version) for path, version in step.items()}
        before, metarange = metarange, committed.apply(metarange, asked)
        old = dict(model)
        model = {path: e for path, e in (model | asked).items() if e is not None}
        assert [e.path for e in committed.scan(metarange)] == sorted(model)
        assert {e.path: e.identity for e in committed.scan(metarange)} == {p: e.identity for p, e in model.items()}
        assert set(committed.changes(before, metarange)) == {
            path for path in old.keys() | model.keys() if (a := old.get(path)) != (b := model.get(path)) and a is not b
        }
