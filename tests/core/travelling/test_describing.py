"""What goes with an object's bytes: what two stores tell of it, compared; and what a filter by tags may be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.errors import Invalid
from core.travelling import describing
from core.travelling.describing import Lock, LockStep, Metadata, Terms, description_of, differences, retention_step
from core.travelling.words import travel_words

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
SOON, LATER = NOW + timedelta(days=1), NOW + timedelta(days=2)


def differ(own: dict[str, str], there: dict[str, str]) -> set[str]:
    return set(differences(description_of(own), description_of(there), NOW))


@pytest.mark.parametrize(
    ("own", "there"),
    [
        ({}, {"content-type": "binary/octet-stream"}),
        ({"content-type": "application/octet-stream"}, {"content-type": "binary/octet-stream"}),
        ({"content-encoding": "gzip"}, {"content-encoding": "aws-chunked,gzip"}),
        ({"content-encoding": "aws-chunked"}, {}),
        ({"expires": "Thu, 01 Dec 1994 16:00:00 GMT"}, {"expires": "Thu, 1 Dec 1994 16:00:00 +0000"}),
        ({"x-amz-meta-a": "é"}, {"x-amz-meta-a": "=?UTF-8?B?w6k=?="}),
        ({"x-amz-meta-a": "1"}, {"x-amz-meta-a": "1", "x-amz-meta-lakemirror-proof": "x"}),
        ({"etag": "1"}, {"etag": "2", "last-modified": "now"}),
        ({"cache-control": ""}, {}),
    ],
)
def test_what_stores_write_otherwise_is_no_difference(own: dict[str, str], there: dict[str, str]) -> None:
    assert differ(own, there) == set() == differ(there, own)
    assert description_of(own).digest == description_of(there).digest


@pytest.mark.parametrize(
    ("own", "there"),
    [
        ({"content-type": "text/x"}, {"content-type": "text/y"}),
        ({"content-encoding": "gzip"}, {}),
        ({"x-amz-meta-a": ""}, {}),
        ({"x-amz-meta-a": "1"}, {"x-amz-meta-b": "1"}),
        ({"expires": "never"}, {"expires": "Thu, 01 Dec 1994 16:00:00 GMT"}),
    ],
)
def test_other_headers_are_a_difference(own: dict[str, str], there: dict[str, str]) -> None:
    assert differ(own, there) == {"headers"}
    assert description_of(own).digest != description_of(there).digest


def test_tags_and_locks_are_differences_of_their_own() -> None:
    own = description_of({"x-amz-tagging-count": "1"}, {"a": "1"})
    assert set(differences(own, description_of({}, {}), NOW)) == {"tags"}
    assert set(differences(own, description_of({}, {"a": "1"}), NOW)) == set()
    assert own.digest != description_of({"x-amz-tagging-count": "1"}, {"a": "2"}).digest
    held = {"x-amz-object-lock-legal-hold": "ON"}
    assert differ(held, {}) == {"lock"} and differ({}, held) == set()
    assert differ({"x-amz-object-lock-legal-hold": "OFF"}, held) == {"lock"}


@pytest.mark.parametrize(
    "told",
    ["2027-01-01T00:00:00Z", "2027-01-01T00:00:00.000Z", "2027-01-01T00:00:00.000000000Z", "2027-01-01T01:00:00+01:00"],
)
def test_times_of_locks_are_read_as_stores_write_them(told: str) -> None:
    lock = description_of({describing.LOCK_MODE: "GOVERNANCE", describing.LOCK_UNTIL: told}).lock
    assert lock.until == datetime(2027, 1, 1, tzinfo=UTC)
    assert lock.headers == {describing.LOCK_MODE: "GOVERNANCE", describing.LOCK_UNTIL: "2027-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("own", "there", "step"),
    [
        (Lock(), Lock(), LockStep.NONE),
        (Lock(), Lock("COMPLIANCE", LATER), LockStep.NONE),
        (Lock("GOVERNANCE", SOON), Lock("GOVERNANCE", SOON), LockStep.NONE),
        (Lock("GOVERNANCE", SOON), Lock(), LockStep.SET),
        (Lock("GOVERNANCE", LATER), Lock("GOVERNANCE", SOON), LockStep.SET),
        (Lock("COMPLIANCE", LATER), Lock("COMPLIANCE", SOON), LockStep.SET),
        (Lock("COMPLIANCE", LATER), Lock("GOVERNANCE", SOON), LockStep.SHORTEN),
        (Lock("GOVERNANCE", SOON), Lock("GOVERNANCE", LATER), LockStep.SHORTEN),
        (Lock("GOVERNANCE", LATER), Lock("COMPLIANCE", SOON), LockStep.FORBIDDEN),
        (Lock("COMPLIANCE", SOON), Lock("COMPLIANCE", LATER), LockStep.FORBIDDEN),
    ],
)
def test_what_makes_a_targets_retention_the_sources(own: Lock, there: Lock, step: LockStep) -> None:
    assert retention_step(own, there) is step


def test_a_retention_that_is_over_is_none() -> None:
    assert Lock("GOVERNANCE", NOW, True).at(NOW) == Lock(hold=True)
    assert Lock("GOVERNANCE", NOW + timedelta(seconds=30)).at(NOW) == Lock()
    assert Lock("GOVERNANCE", SOON).at(NOW) == Lock("GOVERNANCE", SOON)
    assert Lock("", SOON).at(NOW) == Lock()


def test_tags_as_a_header() -> None:
    assert describing.tagging({"b": "x y&=+é", "a": ""}) == "a=&b=x%20y%26%3D%2B%C3%A9"
    assert describing.travelling({"aws:x": "1", "a": "2"}) == {"a": "2"}
    assert describing.matches({"a": "1"}, {"a": "1", "b": "2"}) and not describing.matches({"a": "1"}, {"a": "2"})


@pytest.mark.parametrize(
    "tags",
    [
        {"a": ""},
        {"a": None},
        {"a": 1},
        {"a": ["x"]},
        {"": "x"},
        {"k" * 129: "v"},
        {"k": "v" * 257},
        {str(number): "v" for number in range(11)},
        {"a\0": "v"},
        {"a": "\ud800"},
        {"a": "x\ny"},
    ],
)
def test_tags_that_no_object_can_have_are_refused(tags: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as told:
        describing.check_tags(tags)
    assert told.value.field == "tags" and str(told.value).isprintable()


def test_tags_up_to_the_limits_are_taken() -> None:
    tags = {f"{number}" + "k" * 127: "v" * 256 for number in range(10)}
    assert describing.check_tags(tags) == tags and describing.check_tags({}) == {}


@pytest.mark.parametrize("name", ["a b", "x" * 65, "é", "a/b", "\0"])
def test_names_that_no_storage_class_has_are_refused(name: str) -> None:
    with pytest.raises(Invalid) as told:
        describing.check_storage_class(name)
    assert told.value.field == "storage_class"


def test_the_sentence_says_what_travels_and_how_changes_are_noticed() -> None:
    every = str(travel_words(Terms(Metadata.ALL), 0))
    assert every.startswith("Headers, metadata, tags, retention and legal holds travel with them.")
    assert every.endswith("noticed by events only.")
    some = str(travel_words(Terms(Metadata.ALL, {"b": "2", "a": "1"}, "same"), 5))
    assert "in the source's storage class; only objects with a=1 and b=2 are copied." in some
    assert some.endswith("and by 5 requests a second after each comparison.")
    content = str(travel_words(Terms(Metadata.CONTENT, {}, "GLACIER_IR"), 0))
    assert "of the first copy travel with them, in the storage class GLACIER_IR." in content
    assert content.endswith("Later changes of them alone are not copied.")


def test_the_sentence_of_all_versions_and_of_two_ways_says_what_is_left_out() -> None:
    some = str(travel_words(Terms(Metadata.ALL, {"a": "1"}), 5, versions=True))
    assert "; only versions with a=1 are copied, and no delete markers." in some
    both = str(travel_words(Terms(Metadata.ALL), 0, both_ways=True))
    assert both.endswith("Later changes of them alone are not copied.")
