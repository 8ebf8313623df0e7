"""What an object store tells of its objects: S3's event notifications, which MinIO and others send too. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from core.errors import Invalid

TEST_EVENT = "s3:TestEvent"
LONGEST_KEY = 1024
LONGEST_WORD = 128
_GOING = ("ObjectRemoved:", "LifecycleExpiration:")
_READ = "ObjectAccessed:"
"""MinIO tells of what was read, if it is asked to: by a comparison, too, which must not lead to the next one."""
_BESIDE = (
    "ObjectTagging:",
    "ObjectCreated:PutTagging",
    "ObjectCreated:DeleteTagging",
    "ObjectCreated:PutRetention",
    "ObjectCreated:PutLegalHold",
)
"""What stores tell of tags and locks that changed, and nothing else."""
_COPYING = "Replication:"
_FAILED = "Replication:OperationFailedReplication"
_COPIED = frozenset({"Replication:OperationCompletedReplication", "Replication:OperationReplicatedAfterThreshold"})


@dataclass(frozen=True, slots=True)
class CopyTold:
    """What a source's store told of the copy of an object: it is at the destination, or, if `failed`, it is not.

    `reason`: the store's own word for a failure; `destination`: the bucket that it was to go to; "" where not told.
    """

    bucket: str
    key: str
    failed: bool
    reason: str = ""
    destination: str = ""


def arrived_objects(body: Any) -> set[tuple[str, str]]:
    """Bucket and key of every object that came, or changed, by a parsed notification. Raises Invalid for other JSON.

    AWS and MinIO write keys as a form does, Ceph as they are: a key that may be read in both ways is given in both, and
    one of them may be nobody's. The event that S3 sends to try a new configuration has no records. An object that was
    removed or read has not arrived, and one that was copied from here has arrived elsewhere: `copies_told`.
    """
    records = _records(body)
    places = {place for record in records if not _is(record, *_GOING, _READ, _COPYING) for place in _places(record)}
    return {place for place in places if len(place[1]) <= LONGEST_KEY}


def changed_beside(body: Any) -> set[tuple[str, str]]:
    """Of these objects those of whose tags or locks a notification tells. Raises Invalid as `arrived_objects` does."""
    records = _records(body)
    places = {place for record in records if _is(record, *_BESIDE) for place in _places(record)}
    return {place for place in places if len(place[1]) <= LONGEST_KEY}


def copies_told(body: Any) -> list[CopyTold]:
    """What a notification tells of copies, in its order; keys as in `arrived_objects`. Raises Invalid as that does."""
    told: list[CopyTold] = []
    for record in _records(body):
        failed = _is(record, _FAILED)
        if failed or _event(record) in _COPIED:
            details = record.get("replicationEventData")
            details = details if isinstance(details, Mapping) else {}
            reason = _word(details.get("failureReason")) if failed else ""
            destination = _word(details.get("destinationBucket")).rpartition(":")[2]
            places = sorted(place for place in _places(record) if len(place[1]) <= LONGEST_KEY)
            told += [CopyTold(bucket, key, failed, reason, destination) for bucket, key in places]
    return told


def _word(told: Any) -> str:
    """A word of the store; what no column could hold is none."""
    return told if isinstance(told, str) and told.isprintable() and len(told) <= LONGEST_WORD else ""


def _records(body: Any) -> list[Any]:
    if not isinstance(body, Mapping):
        raise Invalid("expected a JSON object with Records", field="Records")
    if body.get("Event") == TEST_EVENT:
        return []
    records = body.get("Records")
    if not isinstance(records, list):
        raise Invalid("expected an S3 event notification: a list of Records", field="Records")
    return records


def _places(record: Any) -> set[tuple[str, str]]:
    try:
        bucket, key = record["s3"]["bucket"]["name"], record["s3"]["object"]["key"]
    except (TypeError, KeyError) as error:
        raise Invalid("each record must have s3.bucket.name and s3.object.key", field="Records") from error
    if not isinstance(bucket, str) or not isinstance(key, str):
        raise Invalid("s3.bucket.name and s3.object.key must be texts", field="Records")
    return {(bucket, key), (bucket, unquote_plus(key))}


def _event(record: Any) -> str:
    """Its name, which AWS writes without `s3:` and MinIO with it."""
    event = record.get("eventName") if isinstance(record, Mapping) else None
    return event.removeprefix("s3:") if isinstance(event, str) else ""


def _is(record: Any, *kinds: str) -> bool:
    return _event(record).startswith(kinds)


def relative_key(key: str, prefix: str) -> str | None:
    """A key relative to a namespace's prefix in its bucket ("" is the whole bucket); None when it lies outside."""
    if not prefix:
        return key
    return key[len(prefix) + 1 :] if key.startswith(f"{prefix}/") else None
