"""What a bucket says of itself, as boto3 gives it: what is copied out of it, what the store deletes there by itself.

Forms: GetBucketReplication and GetBucketLifecycleConfiguration in the S3 API reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.types import LifecycleRule, ReplicationRule

NOT_CONFIGURED = ("ReplicationConfigurationNotFoundError", "NoSuchLifecycleConfiguration")
"""S3's codes for a bucket that has no such rules."""
_ARCHIVES = ("GLACIER", "DEEP_ARCHIVE")


def replication_of(answer: Mapping[str, Any]) -> Sequence[ReplicationRule]:
    """The rules of a bucket's replication."""
    return [replication_rule(rule) for rule in answer.get("ReplicationConfiguration", {}).get("Rules", ())]


def lifecycle_of(answer: Mapping[str, Any]) -> Sequence[LifecycleRule]:
    """The rules of a bucket's lifecycle."""
    return [lifecycle_rule(rule) for rule in answer.get("Rules", ())]


def replication_rule(rule: Mapping[str, Any]) -> ReplicationRule:
    """A rule of either form: with the prefix itself (the older one, by which delete markers go along), or a filter."""
    prefix, tagged, _ = _chosen(rule)
    markers = rule.get("DeleteMarkerReplication")
    return ReplicationRule(
        id=rule.get("ID", ""),
        enabled=rule.get("Status") == "Enabled",
        prefix=prefix,
        bucket=rule["Destination"]["Bucket"].rpartition(":")[2],
        tagged=tagged,
        delete_markers="Filter" not in rule if markers is None else markers.get("Status") == "Enabled",
        priority=int(rule.get("Priority", 0)),
        kms=_is_on(rule.get("SourceSelectionCriteria", {}).get("SseKmsEncryptedObjects")),
        existing=_is_on(rule.get("ExistingObjectReplication")),
    )


def _is_on(part: Mapping[str, Any] | None) -> bool:
    return part is not None and part.get("Status") == "Enabled"


def lifecycle_rule(rule: Mapping[str, Any]) -> LifecycleRule:
    """A rule of either form. One that keeps some noncurrent versions keeps what is below a delete marker, too."""
    prefix, tagged, sized = _chosen(rule)
    expiration, older = rule.get("Expiration") or {}, rule.get("NoncurrentVersionExpiration") or {}
    moves = [move.get("StorageClass", "") for move in rule.get("Transitions") or ()]
    return LifecycleRule(
        id=rule.get("ID", ""),
        enabled=rule.get("Status") == "Enabled",
        prefix=prefix,
        tagged=tagged,
        sized=sized,
        expires_current=bool(expiration.get("Days") or expiration.get("Date")),
        archives_current=next((move for move in moves if move in _ARCHIVES), ""),
        expires_noncurrent=bool(older.get("NoncurrentDays")) and not older.get("NewerNoncurrentVersions"),
        expires_markers=bool(expiration.get("ExpiredObjectDeleteMarker")),
    )


def _chosen(rule: Mapping[str, Any]) -> tuple[str, bool, bool]:
    """Which objects a rule is for: the prefix, whether by tags, whether by size too."""
    chosen = rule.get("Filter") or {}
    both = chosen.get("And") or {}
    prefix = chosen.get("Prefix") or both.get("Prefix") or rule.get("Prefix") or ""
    sizes = ("ObjectSizeGreaterThan", "ObjectSizeLessThan")
    sized = any(place.get(bound) is not None for place in (chosen, both) for bound in sizes)
    return prefix, bool(chosen.get("Tag") or both.get("Tags")), sized
