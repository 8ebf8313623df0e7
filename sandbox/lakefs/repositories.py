"""Verbs on repositories."""

from __future__ import annotations

from sandbox.lakefs import names
from sandbox.lakefs.errors import Refused, invalid, not_found
from sandbox.lakefs.model import Branch, Repository, new_commit
from sandbox.lakefs.server import Server

PROBE = "_lakefs/dummy"


def repository_create(
    server: Server, *, name: str, storage_namespace: str, default_branch: str, read_only: bool, bare: bool
) -> Repository:
    """A repository; a bare one has no commit, no branch, and its storage is not looked at. Raises 400 and 409."""
    names.check_repository(name, storage_namespace)
    names.check_branch(default_branch)
    with server.lock:
        if name in server.repositories or server.ghost(name):
            raise Refused(409, "error creating repository: not unique")
        repository = Repository(name, storage_namespace, default_branch, server.now(), read_only)
        if not bare:
            _claim_storage(server, repository)
            _first_commit(server, repository)
        server.repositories[name] = repository
        return repository


def _claim_storage(server: Server, repository: Repository) -> None:
    bucket, key = repository.key_of(PROBE)
    if not repository.storage_namespace.startswith("s3://") or not server.blobs.has_bucket(bucket):
        raise invalid("failed to create repository: failed to access storage")
    if server.blobs.stamp(bucket, key):
        raise invalid(
            f"failed to create repository: found lakeFS objects in the storage (:{repository.storage_namespace}) "
            f"key({PROBE}): storage namespace already in use"
        )
    server.blobs.put(bucket, key, b"this is dummy data - created by lakeFS to check accessibility")


def _first_commit(server: Server, repository: Repository) -> None:
    commit = new_commit(
        parents=(),
        committer="",
        message="Repository created",
        creation_date=repository.creation_date,
        metarange_id="",
        metadata={},
    )
    repository.add(commit)
    repository.branches[repository.default_branch] = Branch(commit.id)


def repository_delete(server: Server, name: str, *, force: bool) -> None:
    """Deletes the references, never objects. Raises 403 and 404."""
    with server.lock:
        gone = server.writable(name, force)
        if server.repositories.pop(name, None) is None:
            raise not_found("repository ")
        gone.branches, gone.tags, gone.commits = {}, {}, {}
        server.ghosts[name] = (gone, server.clock() + server.name_lag)
