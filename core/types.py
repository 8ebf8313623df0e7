"""The field's own words as values: what lakeFS and object stores tell us.

Times are `datetime` in UTC unless a name says seconds. Ids are lower-case hex text of 64 characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a listing. `next_after` is "" on the last page, else the cursor of the next one."""

    results: Sequence[T]
    next_after: str = ""


@dataclass(frozen=True, slots=True)
class RepositoryInfo:
    """A repository as an installation describes it. `creation_date` in Unix seconds."""

    id: str
    storage_namespace: str
    default_branch: str
    creation_date: int
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class BranchHead:
    """A branch and the commit that it points to."""

    name: str
    commit_id: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag and the commit that it names."""

    name: str
    commit_id: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit record as lakeFS keeps it. `creation_date` in Unix seconds; `metarange_id` may be "" (first commit)."""

    id: str
    parents: tuple[str, ...]
    committer: str
    message: str
    creation_date: int
    metarange_id: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    generation: int = 0
    version: int = 1

    @property
    def main_parent(self) -> str:
        """The parent on the branch's own line: the first one; in records of version 0 the last one; "" for a root."""
        return main_parent(self.parents, self.version)


def main_parent(parents: Sequence[str], version: int) -> str:
    """Which of a record's parents is on the branch's own line; "" for a root."""
    if not parents:
        return ""
    return parents[0] if version >= 1 else parents[-1]


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """An installation's version, and by how many seconds its clock is ahead of this machine's; None: it didn't say."""

    version: str
    clock_ahead: float | None = None


@dataclass(frozen=True, slots=True)
class GcRules:
    """For how many days lakeFS's garbage collection keeps what a branch has left: of all branches, and of some."""

    default_days: int
    branches: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplicationRule:
    """A rule of a bucket: which of its keys the store copies, under the same key, to which other bucket."""

    id: str
    enabled: bool
    prefix: str
    bucket: str
    tagged: bool = False
    """For objects with certain tags alone, which lakeFS's have not."""
    delete_markers: bool = False
    """Deletions without a version go along."""
    priority: int = 0
    """Of rules for one object and one destination, the highest decides."""
    kms: bool = False
    """Objects that are encrypted by AWS KMS go along."""
    existing: bool = False
    """What was written before the rule goes along some time (MinIO)."""


@dataclass(frozen=True, slots=True)
class LifecycleRule:
    """A rule of a bucket by which the store itself deletes or moves what lies there long enough."""

    id: str
    enabled: bool
    prefix: str
    tagged: bool = False
    """For objects with certain tags alone, which lakeFS's have not."""
    sized: bool = False
    """For objects of certain sizes alone."""
    expires_current: bool = False
    """Deletes objects that nobody has deleted."""
    archives_current: str = ""
    """The storage class to which it moves such objects, if nothing can be read there without a restore."""
    expires_noncurrent: bool = False
    """Removes every version that was deleted or overwritten."""
    expires_markers: bool = False
    """Removes delete markers with nothing below them."""


class RecordOutcome(StrEnum):
    """What the destination said to a commit record. Only these two prove that the record exists."""

    CREATED = "created"
    EXISTS = "exists"


class ObjectVersion(NamedTuple):
    """The current version of an object in a store. Its id is "null" if it is from before the bucket had versions."""

    key: str
    size: int
    version_id: str


class PresignedUrl(NamedTuple):
    """An address by which anybody may read one object until it expires: it belongs into no log."""

    url: str
    expires_at: datetime

    def __repr__(self) -> str:
        return f"PresignedUrl(expires_at={self.expires_at})"


class ObjectInfo(NamedTuple):
    """An object in a store. `etag` without quotes; `storage_class` "" means standard.

    `encryption` is known from a HEAD only: "", "AES256", "aws:kms", "customer"..., and so is `proof`
    (core/proof_of_parts.py). A tuple, for it is made quickly.
    """

    key: str
    size: int
    etag: str
    storage_class: str = ""
    restored: bool = False
    encryption: str = ""
    proof: str = ""

    @property
    def etag_is_content(self) -> bool:
        """Whether the ETag can be a hash of the content: encryption by KMS or a customer's key makes it another."""
        return not self.encryption.startswith(("aws:kms", "customer"))
