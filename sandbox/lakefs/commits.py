"""Verbs on commits: commit, merge, copy a record, compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core.types import Commit
from graveler.entries import Entry
from graveler.identity import commit_id
from sandbox.lakefs.committed import same
from sandbox.lakefs.errors import invalid, taken
from sandbox.lakefs.model import Repository
from sandbox.lakefs.refs import merge_base, resolve_commit
from sandbox.lakefs.server import Event, Server

STRATEGY = ".lakefs.merge.strategy"
STRATEGIES = {"": "default", "dest-wins": "dest-wins", "source-wins": "source-wins"}
MERGES_TRIED = 20
Change = tuple[str, bytes, int]  # kind, path, size


class Conflict(Exception):
    """A merge in which both sides changed a path differently."""


def commit_create(
    server: Server,
    repo: str,
    branch_name: str,
    *,
    message: str,
    metadata: Mapping[str, str],
    date: int | None,
    allow_empty: bool,
    force: bool,
) -> Commit:
    """Commits what is staged on a branch. Raises a 400 `commit: no changes`."""
    with server.lock:
        repository = server.writable(repo, force)
        branch = repository.branch(branch_name)
        before = repository.metarange(branch)
        after = server.committed(repository).apply(before, branch.staged)
        if _unchanged(server, repository, before, after) and not allow_empty:
            raise invalid("commit: no changes")
        commit = server.commit_on(
            repository, branch_name, metarange_id=after, message=message, metadata=metadata, date=date
        )
        server.notify(repository, after, _event("post-commit", branch_name, commit))
        return commit


def _unchanged(server: Server, repository: Repository, before: str, after: str) -> bool:
    """A first commit has no metarange: an empty one after it is no change."""
    return before == after or (not before and not server.committed(repository).ranges(after))


def commit_record_create(server: Server, repo: str, commit: Commit, *, force: bool) -> None:
    """Takes over a record from elsewhere. Neither parents nor metarange need to be here; the id must be right."""
    with server.lock:
        repository = server.writable(repo, force)
        if commit.id != _computed_id(commit):
            raise invalid("commit id: invalid value: validation error")
        if commit.id in repository.commits:
            raise taken("commit already exists: not unique")
        repository.add(commit)


def _computed_id(commit: Commit) -> str:
    return commit_id(
        committer=commit.committer,
        message=commit.message,
        metarange_id=commit.metarange_id,
        creation_date=commit.creation_date,
        metadata=commit.metadata,
        parents=commit.parents,
    )


def merge(
    server: Server,
    repo: str,
    source: str,
    destination: str,
    *,
    message: str,
    metadata: Mapping[str, str],
    strategy: str,
    force: bool,
) -> Commit:
    """Merges a reference into a branch by three-way comparison. Raises Conflict, 400, 404, and the 412 of a hook.

    Hooks are asked while the branch stands where it is; who finds it elsewhere afterwards merges again.
    """
    for _ in range(MERGES_TRIED):
        with server.lock:
            made = _merge_beside(
                server, repo, source, destination, message=message, metadata=metadata, strategy=strategy, force=force
            )
        event = _event("pre-merge", destination, made.commit) | {"merge_source": source}
        server.ask(made.repository, made.theirs.metarange_id, event | {"source_ref": made.theirs.id})
        with server.lock:
            if made.repository.branch(destination).commit_id == made.commit.parents[0]:
                server.move(made.repository, destination, made.commit)
                event = _event("post-merge", destination, made.commit) | {"merge_source": source}
                server.notify(made.repository, made.commit.metarange_id, event)
                return made.commit
    raise taken(f"update branch {destination}: too many merges into it at once")


@dataclass(frozen=True, slots=True)
class _Merged:
    """A merge commit that no branch points to yet."""

    repository: Repository
    theirs: Commit
    commit: Commit


def _merge_beside(
    server: Server,
    repo: str,
    source: str,
    destination: str,
    *,
    message: str,
    metadata: Mapping[str, str],
    strategy: str,
    force: bool,
) -> _Merged:
    with server.lock:
        repository = server.writable(repo, force)
        if strategy not in STRATEGIES:
            raise invalid("argument strategy: invalid value: validation error")
        branch = repository.branch(destination)
        theirs = resolve_commit(repository, source, says=f"update branch {destination}: get commit by ref {source}: ")
        if branch.staged:
            raise invalid("uncommitted changes (dirty branch)")
        merged = _merged_metarange(server, repository, theirs, repository.commit(branch.commit_id), strategy)
        if merged is None:
            raise invalid(f"update branch {destination}: no changes")
        commit = server.commit_beside(
            repository,
            destination,
            metarange_id=merged,
            message=message or f"Merge '{source}' into '{destination}'",
            metadata={**metadata, STRATEGY: STRATEGIES[strategy]},
            merged=theirs,
        )
        return _Merged(repository, theirs, commit)


def _merged_metarange(
    server: Server, repository: Repository, theirs: Commit, ours: Commit, strategy: str
) -> str | None:
    base = merge_base(repository, theirs.id, ours.id)
    base_metarange = base.metarange_id if base else ""
    if theirs.metarange_id == base_metarange:
        return None
    if ours.metarange_id == base_metarange:
        return theirs.metarange_id
    committed = server.committed(repository)
    changes = {path: new for path, (_, new) in committed.changes(base_metarange, theirs.metarange_id).items()}
    for path, (_, mine) in committed.changes(base_metarange, ours.metarange_id).items():
        if path not in changes or same(changes[path], mine):
            continue
        if not strategy:
            raise Conflict
        if strategy == "dest-wins":
            del changes[path]
    return committed.apply(ours.metarange_id, changes)


def compare(server: Server, repo: str, left: str, right: str, *, two_dot: bool) -> list[Change]:
    """What `right` holds that `left` doesn't: since their common ancestor (three-dot), or plainly (two-dot)."""
    with server.lock:
        repository = server.repository(repo)
        ours = resolve_commit(repository, left, says=f"get commit by ref {left}: ")
        theirs = resolve_commit(repository, right, says=f"get commit by ref {right}: ")
        committed = server.committed(repository)
        if two_dot:
            found = committed.changes(ours.metarange_id, theirs.metarange_id)
            return [(_kind(old, new), path, _two_dot_size(old, new)) for path, (old, new) in found.items()]
        base = merge_base(repository, ours.id, theirs.id)
        base_metarange = base.metarange_id if base else ""
        mine = committed.changes(base_metarange, ours.metarange_id)
        changes = committed.changes(base_metarange, theirs.metarange_id)
        return list(_three_dot(changes, mine))


def _three_dot(
    changes: Mapping[bytes, tuple[Entry | None, Entry | None]], mine: Mapping[bytes, tuple[Entry | None, Entry | None]]
) -> Iterator[Change]:
    for path, (old, new) in changes.items():
        if path not in mine:
            yield _kind(old, new), path, new.size if new else 0
        elif not same(mine[path][1], new):
            size = new or mine[path][1]
            yield "conflict", path, size.size if size else 0


def touching(
    server: Server, repository: Repository, walk: Iterator[Commit], wanted: list[tuple[bytes, bool]]
) -> Iterator[Commit]:
    """The commits that changed one of these paths (path, is it a prefix?). As in lakeFS, merges do not count."""
    for commit in walk:
        if len(commit.parents) == 1:
            before = repository.commit(commit.parents[0]).metarange_id
            changed = server.committed(repository).changes(before, commit.metarange_id)
            if any(path == want or (prefix and path.startswith(want)) for path in changed for want, prefix in wanted):
                yield commit


def uncommitted(server: Server, repo: str, branch_name: str) -> list[Change]:
    """What is staged on a branch and differs from its commit. Raises a 410 without the commit's metarange."""
    with server.lock:
        repository = server.repository(repo)
        branch = repository.branch(branch_name)
        metarange_id = repository.metarange(branch)
        committed = server.committed(repository)
        committed.ranges(metarange_id)
        pairs = ((path, committed.find(metarange_id, path), new) for path, new in sorted(branch.staged.items()))
        return [(_kind(old, new), path, new.size if new else 0) for path, old, new in pairs if not same(old, new)]


def _kind(old: Entry | None, new: Entry | None) -> str:
    if old is None:
        return "added"
    return "changed" if new else "removed"


def _two_dot_size(old: Entry | None, new: Entry | None) -> int:
    entry = new or old
    return entry.size if entry else 0


def _event(kind: str, branch_name: str, commit: Commit) -> Event:
    event: Event = {
        "event_type": kind,
        "branch_id": branch_name,
        "source_ref": commit.id,
        "commit_id": commit.id,
        "commit_message": commit.message,
        "committer": commit.committer,
    }
    return event | ({"commit_metadata": dict(commit.metadata)} if commit.metadata else {})
