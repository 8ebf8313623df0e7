"""Verbs on objects: write, read, list, delete."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from graveler.entries import Entry, Timestamp
from sandbox.lakefs.errors import Refused, not_found
from sandbox.lakefs.model import Repository
from sandbox.lakefs.refs import View, resolve
from sandbox.lakefs.server import Server, physical


@dataclass(frozen=True, slots=True)
class Upload:
    """What a client sends."""

    path: str
    body: bytes
    content_type: str
    metadata: Mapping[str, str]


def object_upload(server: Server, repo: str, branch_name: str, upload: Upload, *, force: bool, only_new: bool) -> Entry:
    """Stores the bytes at a fresh address and stages the entry. `only_new`: a 412 if the path is taken."""
    with server.lock:
        repository = server.writable(repo, force)
        branch = repository.branch(branch_name)
        if only_new and _find(server, repository, View(branch.commit_id, branch.staged), upload.path.encode()):
            raise Refused(412, "path already exists")
    address = server.addresses.next()
    headers = {"Content-Type": upload.content_type} | {f"x-amz-meta-{k}": v for k, v in upload.metadata.items()}
    etag = server.blobs.put(*repository.key_of(address), upload.body, headers)
    seconds, fraction = divmod(server.clock(), 1)
    entry = Entry(
        path=upload.path.encode(),
        address=address,
        size=len(upload.body),
        etag=etag,
        last_modified=Timestamp(int(seconds), int(fraction * 10**9)),
        metadata=dict(upload.metadata),
        content_type=upload.content_type,
    )
    with server.lock:
        repository.branch(branch_name).staged[entry.path] = entry
    return entry


def object_stage(server: Server, repo: str, branch_name: str, entry: Entry, *, force: bool) -> Entry:
    """Stages an entry whose object is there already."""
    with server.lock:
        server.writable(repo, force).branch(branch_name).staged[entry.path] = entry
        return entry


def object_delete(server: Server, repo: str, branch_name: str, path: str, *, force: bool) -> None:
    """Stages the removal of a path; nothing happens where there is none."""
    with server.lock:
        repository = server.writable(repo, force)
        branch = repository.branch(branch_name)
        key = path.encode()
        if server.committed(repository).find(repository.metarange(branch), key) is None:
            branch.staged.pop(key, None)
        else:
            branch.staged[key] = None


def object_stat(server: Server, repo: str, ref: str, path: str) -> tuple[Repository, Entry]:
    """The entry that a reader of the reference sees. Raises 404 and 410."""
    with server.lock:
        repository = server.repository(repo)
        found = _find(server, repository, resolve(repository, ref), path.encode())
        if found is None:
            raise not_found()
        return repository, found


def object_list(
    server: Server, repo: str, ref: str, *, prefix: str, after: str, delimiter: str, amount: int
) -> tuple[Repository, list[Entry | str], bool]:
    """A page of entries and, with a delimiter, common prefixes; and whether there is more."""
    with server.lock:
        repository = server.repository(repo)
        view = resolve(repository, ref)
        page: list[Entry | str] = []
        for item in _items(server, repository, view, prefix.encode(), after.encode(), delimiter.encode()):
            if len(page) == amount:
                return repository, page, True
            page.append(item)
        return repository, page, False


def _find(server: Server, repository: Repository, view: View, path: bytes) -> Entry | None:
    if path in view.staged:
        return view.staged[path]
    return server.committed(repository).find(repository.commit(view.commit_id).metarange_id, path)


def _items(
    server: Server, repository: Repository, view: View, prefix: bytes, after: bytes, delimiter: bytes
) -> Iterator[Entry | str]:
    shown = after
    for entry in _visible(server, repository, view, max(prefix, after)):
        if not entry.path.startswith(prefix):
            return
        end = entry.path.find(delimiter, len(prefix)) if delimiter else -1
        name = entry.path if end < 0 else entry.path[: end + len(delimiter)]
        if name <= shown:
            continue
        shown = name
        yield entry if end < 0 else name.decode()


def _visible(server: Server, repository: Repository, view: View, start: bytes) -> Iterator[Entry]:
    """Entries from `start` on, the staged above the committed."""
    metarange_id = repository.commit(view.commit_id).metarange_id
    committed = server.committed(repository).scan(metarange_id, start)
    staged = [(path, entry) for path, entry in sorted(view.staged.items()) if path >= start]
    below = ((entry.path, entry) for entry in committed if entry.path not in view.staged)
    for _, entry in heapq.merge(below, staged, key=lambda pair: pair[0]):
        if entry is not None:
            yield entry


def location(repository: Repository, entry: Entry) -> str:
    """The object's URI."""
    bucket, key = physical(repository, entry)
    return f"s3://{bucket}/{key}"
