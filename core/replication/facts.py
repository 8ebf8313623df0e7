"""What a store tells of the replication that it does itself: of a bucket, and of one object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from core.errors import LakeMirrorError
from core.types import ReplicationRule


class StoreKind(StrEnum):
    """Whose replication it is. OTHER: of a store that has rules at most, and no status of an object."""

    AWS = "aws"
    MINIO = "minio"
    OTHER = "other"


class Status(StrEnum):
    """What the source's store says of an object (x-amz-replication-status). ABSENT: nothing."""

    ABSENT = ""
    PENDING = "PENDING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    REPLICA = "REPLICA"


def status_of(header: str) -> Status:
    """The header's meaning; MinIO has been seen to write COMPLETE. A word that is not known says nothing."""
    word = {"COMPLETE": "COMPLETED"}.get(header.upper(), header.upper())
    return Status(word) if word in set(Status) else Status.ABSENT


@dataclass(frozen=True, slots=True)
class SourceObject:
    """An object as HEAD at the source shows it. `encryption` as in ObjectInfo, `kms_key`: the key's id, if any."""

    status: Status
    written_at: datetime | None = None
    storage_class: str = ""
    encryption: str = ""
    kms_key: str = ""


@dataclass(frozen=True, slots=True)
class Attempts:
    """How the copies to one bucket went by the store's own count (MinIO): failed attempts of the last minute and hour,
    and what waits."""

    failed_last_minute: int = 0
    failed_last_hour: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the store failed to copy an object, by its event: its own word for the reason, "" if it gave none."""

    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Setup:
    """How objects should get from a source's namespace to a mirror's. What could not be asked is the error.

    Versioning is "Enabled", "Suspended" or ""; `attempts` by the name of the bucket that they go to. `usual`: an object
    may be pending for so long.
    """

    source: str
    destination: str
    kind: StoreKind
    rules: Sequence[ReplicationRule] | LakeMirrorError
    source_versioning: str | LakeMirrorError = "Enabled"
    destination_versioning: str | LakeMirrorError = "Enabled"
    attempts: Mapping[str, Attempts] = field(default_factory=dict)
    usual: timedelta = timedelta(minutes=1)


Found = SourceObject | LakeMirrorError | None
"""What a HEAD at the source came to; None: a definite 404."""
