"""What an object store tells of its objects: S3's event notifications, which MinIO and others send too. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_plus

from core.errors import Invalid

TEST_EVENT = "s3:TestEvent"
LONGEST_KEY = 1024
_GOING = ("ObjectRemoved:", "LifecycleExpiration:")


def arrived_objects(body: Any) -> set[tuple[str, str]]:
    """Bucket and key of every object that came, or changed, by a parsed notification. Raises Invalid for other JSON.

    AWS and MinIO write keys as a form does, Ceph as they are: a key that may be read in both ways is given in both, and
    one of them may be nobody's. The event that S3 sends to try a new configuration has no records. An object that was
    removed has not arrived.
    """
    if not isinstance(body, Mapping):
        raise Invalid("expected a JSON object with Records", field="Records")
    if body.get("Event") == TEST_EVENT:
        return set()
    records = body.get("Records")
    if not isinstance(records, list):
        raise Invalid("expected an S3 event notification: a list of Records", field="Records")
    places = {place for record in records if not _is_removal(record) for place in _places(record)}
    return {place for place in places if len(place[1]) <= LONGEST_KEY}


def _places(record: Any) -> set[tuple[str, str]]:
    try:
        bucket, key = record["s3"]["bucket"]["name"], record["s3"]["object"]["key"]
    except (TypeError, KeyError) as error:
        raise Invalid("each record must have s3.bucket.name and s3.object.key", field="Records") from error
    if not isinstance(bucket, str) or not isinstance(key, str):
        raise Invalid("s3.bucket.name and s3.object.key must be texts", field="Records")
    return {(bucket, key), (bucket, unquote_plus(key))}


def _is_removal(record: Any) -> bool:
    """By the event's name, which AWS writes without `s3:` and MinIO with it."""
    event = record.get("eventName") if isinstance(record, Mapping) else None
    return isinstance(event, str) and event.removeprefix("s3:").startswith(_GOING)


def relative_key(key: str, prefix: str) -> str | None:
    """A key relative to a namespace's prefix in its bucket ("" is the whole bucket); None when it lies outside."""
    if not prefix:
        return key
    return key[len(prefix) + 1 :] if key.startswith(f"{prefix}/") else None
