"""What a server keeps in memory: repositories, branches with what is staged on them, tags, commit records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.types import Commit
from graveler.entries import Entry
from graveler.identity import commit_id
from sandbox.lakefs.errors import READ_ONLY, Refused, not_found

Staged = dict[bytes, Entry | None]  # None marks a deleted path


@dataclass(slots=True)
class Branch:
    """A pointer and the changes that are not committed yet."""

    commit_id: str
    hidden: bool = False
    staged: Staged = field(default_factory=dict)


@dataclass(slots=True)
class Repository:
    """A repository of one installation."""

    id: str
    storage_namespace: str
    default_branch: str
    creation_date: int
    read_only: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, Branch] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)

    def branch(self, name: str) -> Branch:
        """Raises a 404."""
        try:
            return self.branches[name]
        except KeyError:
            raise not_found("branch ") from None

    def commit(self, commit: str) -> Commit:
        """A record by its full id; raises a 404 when the record was never copied here."""
        try:
            return self.commits[commit]
        except KeyError:
            raise not_found("commit ") from None

    def metarange(self, branch: Branch) -> str:
        """The metarange that the branch points to."""
        return self.commit(branch.commit_id).metarange_id

    def expect_writable(self, force: bool) -> None:
        """Raises a 403 unless the repository takes writes or the caller forces them."""
        if self.read_only and not force:
            raise Refused(403, READ_ONLY)

    def add(self, commit: Commit) -> Commit:
        """Keeps a record."""
        self.commits[commit.id] = commit
        return commit

    def bucket_and_prefix(self) -> tuple[str, str]:
        """The storage namespace as bucket and key prefix, the latter without a closing slash."""
        bucket, _, prefix = self.storage_namespace.split("://", 1)[1].partition("/")
        return bucket, prefix.rstrip("/")

    def key_of(self, address: str) -> tuple[str, str]:
        """Bucket and key of a relative address."""
        bucket, prefix = self.bucket_and_prefix()
        return bucket, f"{prefix}/{address}" if prefix else address


def new_commit(
    *,
    parents: tuple[Commit, ...],
    committer: str,
    message: str,
    creation_date: int,
    metarange_id: str,
    metadata: Mapping[str, str],
) -> Commit:
    """A record with its id and generation."""
    ids = tuple(parent.id for parent in parents)
    name = commit_id(
        committer=committer,
        message=message,
        metarange_id=metarange_id,
        creation_date=creation_date,
        metadata=metadata,
        parents=ids,
    )
    generation = 1 + max((parent.generation for parent in parents), default=0)
    return Commit(name, ids, committer, message, creation_date, metarange_id, dict(metadata), generation)
