"""What the domain needs from the outside. Adapters implement these; contract tests hold them to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from core.replication.facts import Attempts, SourceObject, StoreKind
from core.types import (
    BranchHead,
    Commit,
    GcRules,
    LifecycleRule,
    ObjectInfo,
    ObjectVersion,
    Page,
    PresignedUrl,
    RecordOutcome,
    ReplicationRule,
    RepositoryInfo,
    ServerInfo,
    Tag,
)


class LakeFS(Protocol):
    """One lakeFS installation. May raise Unauthenticated, Denied, Unreachable, Throttled, RemoteFailure."""

    def server(self) -> ServerInfo: ...  # needs no right but to be let in; NotFound: too old to say
    def get_repository(self, repository: str) -> RepositoryInfo: ...  # NotFound
    def list_repositories(
        self, *, prefix: str = "", after: str = "", amount: int = 1000
    ) -> Page[RepositoryInfo]: ...  # by name; never from a cache
    def create_mirror_repository(
        self, *, name: str, storage_namespace: str, default_branch: str
    ) -> RepositoryInfo: ...  # bare, read-only; Conflict
    def delete_repository(self, repository: str) -> None: ...  # references only; NotFound
    def gc_rules(
        self, repository: str
    ) -> GcRules | None: ...  # they lie in the namespace: all repositories over it have the same; NotFound
    def list_branches(
        self, repository: str, *, after: str = "", amount: int = 1000, hidden: bool = True
    ) -> Page[BranchHead]: ...  # hidden ones too, unless told otherwise
    def get_branch(self, repository: str, branch: str) -> BranchHead: ...  # NotFound
    def log_commits(
        self, repository: str, commit_id: str, *, after: str = "", amount: int = 1000
    ) -> Page[Commit]: ...  # order is NOT topological
    def get_commit(self, repository: str, commit_id: str) -> Commit: ...  # cached up to 10 min by lakeFS: no proof
    def put_commit_record(self, repository: str, commit: Commit) -> RecordOutcome: ...  # Corrupt when the id differs
    def create_branch(
        self, repository: str, branch: str, commit_id: str, *, hidden: bool = False
    ) -> None: ...  # forced; Conflict, NotFound
    def hard_reset_branch(self, repository: str, branch: str, commit_id: str) -> None: ...  # forced; NotFound
    def delete_branch(self, repository: str, branch: str) -> None: ...  # forced; NotFound, Denied for the default
    def has_uncommitted(self, repository: str, branch: str) -> bool: ...
    def drop_uncommitted(self, repository: str, branch: str) -> None: ...  # forced reset
    def list_tags(self, repository: str, *, after: str = "", amount: int = 1000) -> Page[Tag]: ...  # by name
    def get_tag(self, repository: str, tag: str) -> Tag: ...  # NotFound
    def create_tag(self, repository: str, tag: str, commit_id: str) -> None: ...  # forced; Conflict, NotFound
    def delete_tag(self, repository: str, tag: str) -> None: ...  # forced; NotFound


class ObjectStore(Protocol):
    """One S3-compatible store. URIs are `s3://bucket/key`. May raise Denied, Unreachable, Throttled, RemoteFailure.

    What a store has only from another site that it asks (MinIO does so) is not there.
    """

    def get(self, uri: str) -> bytes: ...  # NotFound
    def md5(self, uri: str) -> str: ...  # of the content, read piece by piece; NotFound
    def head(self, uri: str) -> ObjectInfo | None: ...  # None: a definite 404
    def proxies(self, uri: str) -> bool | None: ...  # would it show others another site's object? None: it has its own
    def presigned(self, uri: str, seconds: int) -> PresignedUrl: ...  # whoever has it may read; asks nobody
    def list(self, prefix_uri: str) -> Iterator[ObjectInfo]: ...  # keys ascending, whole keys within the bucket
    def list_versions(self, prefix_uri: str) -> Iterator[ObjectVersion]: ...  # current ones alone; in that order too
    def put(self, uri: str, data: bytes) -> None: ...
    def versioning(self, bucket_uri: str) -> str: ...  # "Enabled", "Suspended" or "" (never was); NotFound
    def replication_rules(self, bucket_uri: str) -> Sequence[ReplicationRule]: ...  # NotFound: no such bucket
    def lifecycle_rules(self, bucket_uri: str) -> Sequence[LifecycleRule]: ...  # NotFound: no such bucket
    def clock_ahead(self, bucket_uri: str) -> float: ...  # of our clock, in seconds


class Replication(Protocol):
    """What a source's store tells of the copies that it makes by itself. May raise what ObjectStore may."""

    def kind(self, bucket_uri: str) -> StoreKind: ...  # whose replication it is
    def rules(self, bucket_uri: str) -> Sequence[ReplicationRule]: ...  # NotFound: no such bucket
    def attempts(self, bucket_uri: str) -> Mapping[str, Attempts]: ...  # by target bucket; none where it keeps no count
    def stands(self, uri: str) -> SourceObject | None: ...  # None: a definite 404; Invalid: by its writer's key alone
