"""Verbs on branches and tags."""

from __future__ import annotations

from sandbox.lakefs import names
from sandbox.lakefs.errors import Refused, not_found
from sandbox.lakefs.model import Branch
from sandbox.lakefs.refs import expect_free, resolve
from sandbox.lakefs.server import Server


def branch_create(server: Server, repo: str, *, name: str, source: str, hidden: bool, force: bool) -> str:
    """A branch at the source's commit, which needs its record but no metadata files. Gives the commit id."""
    with server.lock:
        repository = server.writable(repo, force)
        names.check_branch(name)
        expect_free(repository, name, kind="branch")
        commit_id = resolve(repository, source, says=f"source reference '{source}': ").commit_id
        repository.branches[name] = Branch(commit_id, hidden)
        event = {"event_type": "post-create-branch", "branch_id": name, "source_ref": source, "commit_id": commit_id}
        server.notify(repository, _metarange(server, repo, commit_id), event)
        return commit_id


def branch_delete(server: Server, repo: str, name: str, *, force: bool) -> None:
    """Raises 403 for the default branch and 404."""
    with server.lock:
        repository = server.writable(repo, force)
        if name == repository.default_branch:
            raise Refused(403, "cannot delete repository default branch")
        commit_id = repository.branch(name).commit_id
        del repository.branches[name]
        event = {"event_type": "post-delete-branch", "branch_id": name, "source_ref": commit_id}
        server.notify(repository, _metarange(server, repo, commit_id), event)


def branch_hard_reset(server: Server, repo: str, name: str, *, ref: str, force: bool) -> None:
    """Points the branch to a commit. What is staged on it stays. No hook runs."""
    with server.lock:
        repository = server.writable(repo, force)
        branch = repository.branch(name)
        branch.commit_id = resolve(repository, ref, says=f"hard-reset {name} to {ref}: ").commit_id


def branch_reset(server: Server, repo: str, name: str, *, kind: str, path: str, force: bool) -> None:
    """Forgets what is staged: everything (`reset`), one path (`object`) or a prefix (`common_prefix`)."""
    with server.lock:
        branch = server.writable(repo, force).branch(name)
        wanted = path.encode()
        branch.staged = {at: entry for at, entry in branch.staged.items() if not _is_reset(kind, wanted, at)}


def tag_create(server: Server, repo: str, *, name: str, ref: str, force: bool) -> str:
    """A tag at the reference's commit; gives the commit id. Force does not move a tag."""
    with server.lock:
        repository = server.writable(repo, force)
        names.check_tag(name)
        expect_free(repository, name, kind="tag")
        repository.tags[name] = resolve(repository, ref).commit_id
        return repository.tags[name]


def tag_delete(server: Server, repo: str, name: str, *, force: bool) -> None:
    """Raises a 404."""
    with server.lock:
        repository = server.writable(repo, force)
        if repository.tags.pop(name, None) is None:
            raise not_found("tag ")


def _is_reset(kind: str, wanted: bytes, path: bytes) -> bool:
    return kind == "reset" or path == wanted or (kind == "common_prefix" and path.startswith(wanted))


def _metarange(server: Server, repo: str, commit_id: str) -> str:
    record = server.repository(repo).commits.get(commit_id)
    return record.metarange_id if record else ""
