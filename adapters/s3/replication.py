"""What stores tell of the replication that they do by themselves. Implements `core.ports.Replication`.

AWS tells by the header x-amz-replication-status of an object, MinIO does too and counts its attempts for each bucket
(`GET /bucket?replication-metrics=2`); others (Ceph, moto) have rules at most.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from adapters.s3.fast_store import FastObjectStore
from adapters.s3.store import split_uri, stored
from core.errors import NotFound, RemoteFailure
from core.replication.facts import Attempts, SourceObject, StoreKind, status_of
from core.types import ReplicationRule

_AWS = ".amazonaws.com"
_CHINA = ".amazonaws.com.cn"


class StoreReplication:
    """The replication of one source's store. Safe to use from several threads."""

    def __init__(self, store: FastObjectStore) -> None:
        self._store = store

    def kind(self, bucket_uri: str) -> StoreKind:
        """By its address, else by the name that the server gives itself."""
        host = urlsplit(self._store.base_url).hostname or ""
        if host.endswith((_AWS, _CHINA)):
            return StoreKind.AWS
        bucket, _ = split_uri(bucket_uri)
        answer = self._store.send("HEAD", self._store.url(bucket), f"ask {bucket} for its server")
        return StoreKind.MINIO if answer.headers.get("server", "").startswith("MinIO") else StoreKind.OTHER

    def rules(self, bucket_uri: str) -> Sequence[ReplicationRule]:
        """What the store copies out of a bucket by itself; none where it has no configuration for that."""
        return self._store.replication_rules(bucket_uri)

    def attempts(self, bucket_uri: str) -> Mapping[str, Attempts]:
        """MinIO's count by the bucket that objects go to. It needs the right to read the bucket's rules."""
        if self.kind(bucket_uri) is not StoreKind.MINIO:
            return {}
        bucket, _ = split_uri(bucket_uri)
        url = self._store.url(bucket, "", {"replication-metrics": "2"})
        try:
            return attempts_of(json.loads(self._store.send("GET", url, f"ask {bucket} for its replication").data))
        except NotFound:  # without rules there is nothing to count
            return {}
        except (ValueError, TypeError, AttributeError) as error:
            raise RemoteFailure(f"{self._store.where} tells of the replication of {bucket} in a way unknown") from error

    def stands(self, uri: str) -> SourceObject | None:
        """What a HEAD of the source's own object says of its copies."""
        bucket, key = split_uri(uri)
        try:
            answer = self._store.send("HEAD", self._store.url(bucket, key), f"head {uri}")
        except NotFound:
            return None
        told = {name.lower(): value for name, value in answer.headers.items()}
        info = stored(key, told)
        return SourceObject(
            status=status_of(told.get("x-amz-replication-status", "")),
            written_at=_moment(told.get("last-modified", "")),
            storage_class="" if info.restored else info.storage_class,
            encryption=info.encryption,
            kms_key=told.get("x-amz-server-side-encryption-aws-kms-key-id", ""),
        )


def attempts_of(metrics: Mapping[str, Any]) -> Mapping[str, Attempts]:
    """By target bucket, from MinIO's document (`currStats.Stats`, by the target's ARN, which ends with its bucket)."""
    by_target = metrics.get("currStats", {}).get("Stats") or {}
    return {arn.rpartition(":")[2]: _attempts(stats) for arn, stats in by_target.items()}


def _attempts(stats: Mapping[str, Any]) -> Attempts:
    failed = stats.get("failed", {})
    return Attempts(
        failed_last_minute=int(failed.get("lastMinute", {}).get("count", 0)),
        failed_last_hour=int(failed.get("lastHour", {}).get("count", 0)),
        waiting=int(stats.get("pendingReplicationCount", 0)),
    )


def _moment(header: str) -> datetime | None:
    try:
        return parsedate_to_datetime(header) if header else None
    except ValueError:
        return None
