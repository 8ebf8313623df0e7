"""What a store lists is read by a pattern where it is written as stores do, else by a parser: the same either way."""

from __future__ import annotations

from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.s3 import fast_store
from core.errors import RemoteFailure

KEYS = st.text(alphabet="ab/ &<%+é\U0001f600\"'", min_size=1, max_size=6)
SHAPES = (
    "{key}{at}{etag}{size}{kind}",
    "{key}{at}{etag}{sum}{size}{owner}{kind}",
    "{key}{at}{etag}{size}{kind}{owner}",
)


def body_of(items: list[tuple[str, int, str]], shape: str, quote: str, *, more: bool = False) -> bytes:
    """A listing, as a store may write it."""
    contents = "".join(
        "<Contents>"
        + shape.format(
            key=f"<Key>{escape(key)}</Key>",
            at="<LastModified>2026-11-27T10:00:00.000Z</LastModified>",
            etag=f"<ETag>{quote}{etag}{quote}</ETag>",
            sum="<ChecksumAlgorithm>CRC32</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType>",
            size=f"<Size>{size}</Size>",
            owner="<Owner><ID>0</ID><DisplayName/></Owner>",
            kind="<StorageClass>STANDARD</StorageClass>",
        )
        + "</Contents>"
        for key, size, etag in items
    )
    told = f"<IsTruncated>{str(more).lower()}</IsTruncated>"
    xmlns = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    return f'<?xml version="1.0"?>\n<ListBucketResult {xmlns}>{told}{contents}</ListBucketResult>'.encode()


@given(
    items=st.lists(st.tuples(KEYS, st.integers(0, 10**12), st.sampled_from(["0a", "0a-3", "&amp;x"])), max_size=5),
    shape=st.sampled_from(SHAPES),
    quote=st.sampled_from(["&quot;", "&#34;", '"', ""]),
    more=st.booleans(),
    dated=st.booleans(),
)
def test_both_ways_read_the_same(
    items: list[tuple[str, int, str]], shape: str, quote: str, *, more: bool, dated: bool
) -> None:
    body = body_of(items, shape, quote, more=more)
    parsed = fast_store._parsed_page(body, "list", "the store", dated)
    assert fast_store._page(body, "list", "the store", dated) == parsed
    assert fast_store._plain_page(body, dated) in (None, parsed)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_stores_write_is_read_by_the_pattern(shape: str) -> None:
    page = fast_store._plain_page(body_of([("a", 1, "0a"), ("b", 2, "0b")], shape, "&quot;", more=True), True)
    assert page is not None and page.more
    assert (page.keys, page.sizes, page.etags, page.storage_classes) == (["a", "b"], [1, 2], ["0a", "0b"], ["", ""])


@pytest.mark.parametrize("cut", [1, 30, 120, 200])
def test_a_listing_that_broke_off_is_none(cut: int) -> None:
    whole = body_of([("a", 1, "0a"), ("b", 2, "0b")], SHAPES[0], "&quot;")
    with pytest.raises(RemoteFailure):
        fast_store._page(whole[:-cut], "list", "the store")


def test_what_stands_in_a_comment_is_no_object() -> None:
    hidden = (
        body_of([("a", 1, "0a")], SHAPES[0], "")
        .replace(b"<Contents>", b"<!-- <Contents>")
        .replace(b"</Contents>", b"</Contents> -->")
    )
    assert fast_store._page(hidden, "list", "the store").keys == []
