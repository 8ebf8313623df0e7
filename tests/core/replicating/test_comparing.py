"""What counts as equal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.proof_of_parts import signature
from core.replicating.comparing import Alike, by_heads, by_listing, is_later
from core.types import ObjectInfo

A, B = "a" * 32, "b" * 32
URI = "s3://out/k"


@pytest.mark.parametrize(
    ("there", "alike"),
    [
        (None, Alike.DIFFERENT),
        ((2, A), Alike.DIFFERENT),
        ((1, A), Alike.EQUAL),
        ((1, B), Alike.DOUBT),
        ((1, f"{A}-2"), Alike.DOUBT),
    ],
)
def test_listings(there: tuple[int, str] | None, alike: Alike) -> None:
    assert by_listing(1, A, there) is alike


@pytest.mark.parametrize(
    ("source", "there", "alike"),
    [
        (ObjectInfo("k", 1, A), None, Alike.DIFFERENT),
        (ObjectInfo("k", 1, A), ObjectInfo("k", 2, A), Alike.DIFFERENT),
        (ObjectInfo("k", 1, A), ObjectInfo("k", 1, A), Alike.EQUAL),
        (ObjectInfo("k", 1, A), ObjectInfo("k", 1, B), Alike.DIFFERENT),
        (ObjectInfo("k", 1, A), ObjectInfo("k", 1, B, encryption="aws:kms"), Alike.EQUAL),
        (ObjectInfo("k", 1, A, encryption="aws:kms"), ObjectInfo("k", 1, B), Alike.EQUAL),
        (ObjectInfo("k", 1, A), ObjectInfo("k", 1, B, encryption="AES256"), Alike.DIFFERENT),
        (ObjectInfo("k", 1, f"{A}-2"), ObjectInfo("k", 1, f"{A}-2"), Alike.EQUAL),
        (ObjectInfo("k", 1, f"{A}-2"), ObjectInfo("k", 1, f"{B}-3"), Alike.DIFFERENT),
    ],
)
def test_heads(source: ObjectInfo, there: ObjectInfo | None, alike: Alike) -> None:
    assert by_heads(source, there, URI, "secret") is alike


def test_where_no_etag_tells_what_was_written_before_its_source_is_not_that() -> None:
    source, there = ObjectInfo("k", 1, A), ObjectInfo("k", 1, B, encryption="aws:kms")
    assert by_heads(source, there, URI, "secret", later=False) is Alike.DIFFERENT
    assert by_heads(source, ObjectInfo("k", 1, A), URI, "secret", later=False) is Alike.EQUAL
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert is_later(at + timedelta(seconds=1), at) and is_later(None, at) and is_later(at, None)
    assert not is_later(at, at)


def test_other_parts_count_with_our_proof_for_this_very_object() -> None:
    source = ObjectInfo("k", 9, f"{A}-2")
    proof = signature("secret", URI, size=9, source_etag=source.etag, own_etag=f"{B}-3")
    there = ObjectInfo("k", 9, f"{B}-3", proof=proof)
    assert by_heads(source, there, URI, "secret") is Alike.EQUAL
    assert by_heads(source, there, "s3://out/other", "secret") is Alike.DIFFERENT
    assert by_heads(source, there, URI, "another secret") is Alike.DIFFERENT
    assert by_heads(ObjectInfo("k", 9, f"{B}-2"), there, URI, "secret") is Alike.DIFFERENT
