"""What the listings of two namespaces tell of each other."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

import pytest

from core.errors import RemoteFailure
from core.installations.unreplicated_objects import (
    Lacking,
    Namespaces,
    lacking,
    manifest_line,
    say_lacking,
)
from core.types import ObjectInfo, ObjectVersion

PLACES = Namespaces("s3://src/lake", "s3://dst/copies/lake")


def listed(prefix: str, keys: Iterable[str], size: int = 1) -> list[ObjectInfo]:
    return [ObjectInfo(f"{prefix}/{key}", size, "e") for key in keys]


def compared(source: str, mirror: str) -> tuple[list[str], Lacking]:
    """Keys by their words."""
    found = Lacking()
    pair = listed("lake", source.split()), listed("copies/lake", mirror.split())
    return [one.key.removeprefix("lake/") for one in lacking(PLACES, *pair, found, lambda: False)], found


@pytest.mark.parametrize(
    ("source", "mirror", "missing"),
    [
        ("a b c", "a b c", ""),
        ("a b c", "", "a b c"),
        ("", "a", ""),
        ("b d f", "a c e g", "b d f"),
        ("a b c d", "b x", "a c d"),
        ("data/1 data/10 data/2", "data/10", "data/1 data/2"),
        ("_lakemirror/mirror.json a", "", "a"),
        ("a", "_lakemirror/mirror.json a", ""),
    ],
)
def test_what_the_mirror_lacks_is_named_and_counted(source: str, mirror: str, missing: str) -> None:
    keys, found = compared(source, mirror)
    assert keys == missing.split()
    assert (found.objects, found.bytes, found.whole) == (len(keys), len(keys), True)
    assert found.looked == len([key for key in source.split() if not key.startswith("_lakemirror/")])


def test_another_size_is_lacking_too() -> None:
    found = Lacking()
    pair = listed("lake", "ab", size=7), listed("copies/lake", "ab", size=6)
    assert len(list(lacking(PLACES, *pair, found, lambda: False))) == 2
    assert (found.objects, found.bytes) == (2, 14)


def test_an_object_that_is_the_folder_itself_is_one_like_others() -> None:
    assert compared("", "")[0] == []
    found = Lacking()
    source = [ObjectInfo("lake/", 0, "e"), *listed("lake", "a")]
    assert [one.key for one in lacking(PLACES, source, [], found, lambda: False)] == ["lake/", "lake/a"]


@pytest.mark.parametrize(("source", "mirror"), [("b a", "a b"), ("a b c", "b a"), ("a a", "a")])
def test_a_listing_out_of_order_is_told_and_nothing_made_of_it(source: str, mirror: str) -> None:
    with pytest.raises(RemoteFailure, match="out of order"):
        compared(source, mirror)


def test_time_ends_too_where_the_mirror_holds_much_that_the_source_has_not() -> None:
    found, read = Lacking(), []

    def mirror() -> Iterator[ObjectInfo]:
        for one in listed("copies/lake", [f"a{number:04}" for number in range(1000)]):
            read.append(one)
            yield one

    assert not list(lacking(PLACES, listed("lake", "b"), mirror(), found, lambda: len(read) >= 10))
    assert (len(read), found.looked, found.whole) == (10, 0, False)


def test_where_time_ends_the_number_is_at_least_that() -> None:
    found, left = Lacking(), [False, False, True]
    pair = listed("lake", "abcd"), listed("copies/lake", "")
    assert len(list(lacking(PLACES, *pair, found, lambda: left.pop(0)))) == 2
    assert (found.objects, found.looked, found.whole) == (2, 2, False)
    assert "2 or more (2 bytes)" in say_lacking(PLACES, found)


@pytest.mark.parametrize("key", ["lake/data/a b", "lake/a,b", 'lake/"q"', "lake/ü+%20", "lake/a\nb", "lake/=1+1"])
def test_a_line_of_the_manifest_is_bucket_key_and_version_whatever_the_key(key: str) -> None:
    [row] = csv.reader([manifest_line("s3://src/lake", ObjectVersion(key, 1, "v.1_x"))])
    assert (row[0], unquote(row[1]), row[2]) == ("src", key, "v.1_x")
    assert manifest_line("s3://src", ObjectInfo(key, 1, "e")).count(",") == 1
    assert all(ord(sign) < 128 for sign in manifest_line("s3://src", ObjectInfo(key, 1, "e")))
