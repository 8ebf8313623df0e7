"""Hypothesis strategies for entries and commits."""

from __future__ import annotations

from hypothesis import strategies as st

from graveler.entries import MAX_SECONDS, AddressType, Entry, Timestamp

# Few letters, so that paths share beginnings; raw bytes too, since a path needn't be text.
paths = st.one_of(
    st.text("ab/é", min_size=1, max_size=12).map(str.encode),
    st.binary(min_size=1, max_size=6),
    st.builds(lambda n: b"tables/day=%02d/part-%05d.parquet" % (n % 7, n), st.integers(0, 99_999)),
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
timestamps = st.builds(Timestamp, st.integers(-62_135_596_800, MAX_SECONDS), st.integers(0, 999_999_999))


def entries(path: bytes) -> st.SearchStrategy[Entry]:
    """Any entry at this path, everyday ones and odd ones."""
    return st.builds(
        Entry,
        path=st.just(path),
        address=st.one_of(st.just("data/p/1"), texts, st.text("x", min_size=120, max_size=140)),
        size=st.one_of(st.integers(0, 1 << 40), st.integers(-(1 << 63), (1 << 63) - 1)),
        etag=st.one_of(st.just("d41d8cd98f00b204e9800998ecf8427e"), texts),
        last_modified=st.one_of(st.none(), st.just(Timestamp(1_795_251_119)), timestamps),
        metadata=st.dictionaries(texts, texts, max_size=3),
        content_type=st.sampled_from(["", "application/octet-stream"]),
        address_type=st.sampled_from(AddressType),
    )


def sorted_entries(min_size: int = 1, max_size: int = 60) -> st.SearchStrategy[list[Entry]]:
    """Entries in order of path, each path once."""
    chosen = st.lists(paths, min_size=min_size, max_size=max_size, unique=True).map(sorted)
    return chosen.flatmap(lambda found: st.tuples(*map(entries, found)).map(list))
