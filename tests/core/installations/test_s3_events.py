"""S3's event notifications as stores write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote_plus

import pytest

from core.errors import Invalid
from core.installations.s3_events import CopyTold, arrived_objects, changed_beside, copies_told, relative_key


def record(key: str, bucket: str = "dst", event: str = "ObjectCreated:Put") -> dict[str, Any]:
    return {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "eu-west-1",
        "eventTime": "2026-11-21T12:00:00.000Z",
        "eventName": event,
        "userIdentity": {"principalId": "AWS:AROAEXAMPLE:replication"},
        "responseElements": {"x-amz-request-id": "C3D13FE58DE4C810"},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "arrivals",
            "bucket": {"name": bucket, "ownerIdentity": {"principalId": "A3N"}, "arn": f"arn:aws:s3:::{bucket}"},
            "object": {"key": key, "size": 1024, "eTag": "d41d8cd9", "sequencer": "0055AED6DCD90281E5"},
        },
    }


def test_every_record_of_a_batch_is_read() -> None:
    body = {"Records": [record("lake/data/a"), record("lake/_lakefs/x"), record("lake/_lakefs/x")]}
    assert arrived_objects(body) == {("dst", "lake/data/a"), ("dst", "lake/_lakefs/x")}


@pytest.mark.parametrize("key", ["a+b cé", "a%20b", "a%2Bb", "100%", "a%zz", "a+", "ü%C3%BC", "%FF"])
@pytest.mark.parametrize("written", [quote_plus, str], ids=["as AWS and MinIO write it", "as Ceph does"])
def test_a_key_is_found_however_the_store_writes_it(key: str, written: Callable[[str], str]) -> None:
    found = arrived_objects({"Records": [record(written(key))]})
    assert ("dst", key) in found and len(found) <= 2


def test_a_long_key_is_not_too_long_for_its_form() -> None:
    key = "é" * 1000
    assert arrived_objects({"Records": [record(quote_plus(key))]}) == {("dst", key)}


def test_minio_s_form_is_read_too() -> None:
    body = {"EventName": "s3:ObjectCreated:Put", "Key": "dst/lake/a", "Records": [record("lake%2Fa")]}
    assert arrived_objects(body) == {("dst", "lake/a"), ("dst", "lake%2Fa")}


def test_the_event_that_tries_a_configuration_tells_of_nothing() -> None:
    body = {
        "Service": "Amazon S3",
        "Event": "s3:TestEvent",
        "Time": "2026-11-21T12:00:00.000Z",
        "Bucket": "dst",
        "RequestId": "5582815E1AEA5ADF",
        "HostId": "8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR",
    }
    assert arrived_objects(body) == set()


@pytest.mark.parametrize("event", ["ObjectRemoved:Delete", "s3:ObjectRemoved:Delete", "LifecycleExpiration:Delete"])
def test_what_was_removed_has_not_arrived(event: str) -> None:
    assert arrived_objects({"Records": [record("a", event=event), record("b", event="ObjectRestore:Completed")]}) == {
        ("dst", "b")
    }


def test_a_key_longer_than_any_store_takes_is_left_out() -> None:
    assert arrived_objects({"Records": [record("a" * 1025)]}) == set()


@pytest.mark.parametrize(
    "body",
    [
        None,
        7,
        [],
        {},
        {"Records": {}},
        {"Records": [1]},
        {"Records": [{}]},
        {"Records": [{"s3": {"bucket": {"name": "b"}, "object": {}}}]},
        {"Records": [{"s3": {"bucket": {"name": 1}, "object": {"key": "k"}}}]},
        {"Records": [{"s3": {"bucket": "b", "object": "k"}}]},
    ],
)
def test_other_json_is_refused(body: Any) -> None:
    with pytest.raises(Invalid):
        arrived_objects(body)


@pytest.mark.parametrize(
    ("key", "prefix", "inside"),
    [("lake/a/b", "lake", "a/b"), ("lake2/a", "lake", None), ("a", "", "a"), ("lake", "lake", None)],
)
def test_keys_are_told_apart_by_whole_names(key: str, prefix: str, inside: str | None) -> None:
    assert relative_key(key, prefix) == inside


def copying(event: str, key: str = "lake/a", **details: str) -> dict[str, Any]:
    return record(key, "src", event) | ({"replicationEventData": details} if details else {})


def test_what_the_source_s_store_says_of_copies_is_no_arrival() -> None:
    body = {"Records": [copying("s3:Replication:OperationCompletedReplication"), record("lake/b", "src")]}
    assert arrived_objects(body) == {("src", "lake/b")}
    assert copies_told(body) == [CopyTold("src", "lake/a", failed=False)]


def test_a_failure_has_the_store_s_reason_and_the_bucket_that_it_was_for() -> None:
    details = {"destinationBucket": "arn:aws:s3:::dst", "failureReason": "DstKmsKeyNotFound"}
    [told] = copies_told({"Records": [copying("Replication:OperationFailedReplication", **details)]})
    assert told == CopyTold("src", "lake/a", failed=True, reason="DstKmsKeyNotFound", destination="dst")
    wrong = {"destinationBucket": "dst\0", "failureReason": "x" * 500}
    [told] = copies_told({"Records": [copying("Replication:OperationFailedReplication", **wrong)]})
    assert (told.reason, told.destination) == ("", "")


def test_other_events_of_copying_tell_nothing() -> None:
    events = ("Replication:OperationNotTracked", "Replication:OperationMissedThreshold", "ObjectCreated:Put")
    assert copies_told({"Records": [copying(event) for event in events]}) == []
    assert arrived_objects({"Records": [copying(events[0])]}) == set()


@pytest.mark.parametrize(
    "event",
    [
        *("ObjectTagging:Put", "ObjectTagging:Delete", "s3:ObjectCreated:PutTagging", "s3:ObjectCreated:DeleteTagging"),
        *("s3:ObjectCreated:PutRetention", "s3:ObjectCreated:PutLegalHold"),
    ],
)
def test_events_of_tags_and_locks_are_told_apart(event: str) -> None:
    body = {"Records": [record("a", event=event), record("b"), record("c", event="s3:ObjectCreated:Copy")]}
    assert changed_beside(body) == {("dst", "a")}
    assert arrived_objects(body) == {("dst", "a"), ("dst", "b"), ("dst", "c")}
