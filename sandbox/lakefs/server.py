"""One installation: its repositories and what the verbs need to work on them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from core.types import Commit
from graveler.entries import Entry
from sandbox.lakefs.blobs import Blobs
from sandbox.lakefs.committed import Committed, FileCache
from sandbox.lakefs.errors import no_data, not_found
from sandbox.lakefs.model import Repository, new_commit
from sandbox.lakefs.names import AddressBook

USER = "admin"
Event = dict[str, Any]


class Server:
    """State in memory, one lock. `notify` is called with the events of a writable repository's branches, `ask` before
    one is moved by a merge: without the lock, and what it raises is the caller's answer."""

    def __init__(self, blobs: Blobs, *, name_lag: float = 0.0, clock: Callable[[], float] = time.time) -> None:
        """`name_lag`: seconds for which a deleted repository's name is still known, about 7 with real servers."""
        self.blobs = blobs
        self.clock = clock
        self.name_lag = name_lag
        self.ghosts: dict[str, tuple[Repository, float]] = {}
        self.lock = threading.RLock()
        self.repositories: dict[str, Repository] = {}
        self.addresses = AddressBook()
        self.notify: Callable[[Repository, str, Event], None] = lambda repository, metarange, event: None
        self.ask: Callable[[Repository, str, Event], None] = lambda repository, metarange, event: None
        self._cache = FileCache()

    def repository(self, name: str) -> Repository:
        """Raises a 404."""
        found = self.repositories.get(name) or self.ghost(name)
        if found is None:
            raise not_found("repository ")
        return found

    def ghost(self, name: str) -> Repository | None:
        """A deleted repository that the server's cache still shows, without branches."""
        repository, until = self.ghosts.get(name, (None, 0.0))
        return repository if self.clock() < until else None

    def writable(self, name: str, force: bool) -> Repository:
        """The repository, if the caller may write to it: raises a 404 or the 403 of read-only ones."""
        repository = self.repository(name)
        repository.expect_writable(force)
        return repository

    def committed(self, repository: Repository) -> Committed:
        """The metadata files of a repository."""
        return Committed(self.blobs, *repository.bucket_and_prefix(), self._cache)

    def now(self) -> int:
        """Unix seconds."""
        return int(self.clock())

    def commit_on(
        self,
        repository: Repository,
        branch_name: str,
        *,
        metarange_id: str,
        message: str,
        metadata: Mapping[str, str],
        date: int | None = None,
        merged: Commit | None = None,
    ) -> Commit:
        """Adds a commit to the branch, moves the branch there and forgets what was staged."""
        commit = self.commit_beside(
            repository,
            branch_name,
            metarange_id=metarange_id,
            message=message,
            metadata=metadata,
            date=date,
            merged=merged,
        )
        self.move(repository, branch_name, commit)
        return commit

    def move(self, repository: Repository, branch_name: str, commit: Commit) -> None:
        """Moves a branch to a commit and forgets what was staged."""
        branch = repository.branch(branch_name)
        branch.commit_id = commit.id
        branch.staged = {}

    def commit_beside(
        self,
        repository: Repository,
        branch_name: str,
        *,
        metarange_id: str,
        message: str,
        metadata: Mapping[str, str],
        date: int | None = None,
        merged: Commit | None = None,
    ) -> Commit:
        """Adds a commit on top of the branch, which stays where it is."""
        branch = repository.branch(branch_name)
        head = repository.commit(branch.commit_id)
        commit = new_commit(
            parents=(head, merged) if merged else (head,),
            committer=USER,
            message=message,
            creation_date=self.now() if date is None else date,
            metarange_id=metarange_id,
            metadata=metadata,
        )
        repository.add(commit)
        return commit

    def body_of(self, repository: Repository, entry: Entry) -> bytes:
        """An object's bytes; a 410 when the store hasn't got it."""
        found = self.blobs.get(*physical(repository, entry))
        if found is None:
            raise no_data()
        return found


def physical(repository: Repository, entry: Entry) -> tuple[str, str]:
    """Bucket and key of an entry's object."""
    if entry.relative:
        return repository.key_of(entry.address)
    bucket, _, key = entry.address.split("://", 1)[1].partition("/")
    return bucket, key
