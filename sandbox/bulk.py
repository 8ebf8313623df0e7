"""Very many small objects in one commit, past the API: for tests of size, on the stand-in and on a real lakeFS."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.types import Commit
from graveler.entries import Entry, Timestamp
from sandbox.bundle import Stored
from sandbox.journal import DELETE
from sandbox.lakefs.committed import Committed, FileCache
from sandbox.lakefs.model import new_commit
from sandbox.lakefs.names import AddressBook
from sandbox.lakefs_http import LakeFS
from sandbox.layout import Layout, Region
from sandbox.side_door import SideDoor

AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Bulk:
    """What is imported. `replicated`: the objects are put into the other regions at once, too, so that only the
    metadata files go by replication."""

    region: str
    repository: str
    branch: str
    objects: int
    prefix: str = "bulk/"
    size: int = 16
    replicated: bool = False
    message: str = "Bulk import"


class SideBlobs:
    """lakeFS's view of a region's store, through the side door. What it writes counts as written by a client."""

    def __init__(self, door: SideDoor) -> None:
        self._door = door

    def has_bucket(self, bucket: str) -> bool:
        return True

    def stamp(self, bucket: str, key: str) -> str:
        found = self._read(bucket, key)
        return found.etag if found else ""

    def get(self, bucket: str, key: str) -> bytes | None:
        found = self._read(bucket, key)
        return found.body if found else None

    def put(self, bucket: str, key: str, data: bytes, metadata: Mapping[str, str] = {}) -> str:
        self._door.write([Stored(bucket, key, data, metadata=metadata)], journal=True)
        return hashlib.md5(data, usedforsecurity=False).hexdigest()

    def _read(self, bucket: str, key: str) -> Stored | None:
        found = self._door.read([(bucket, key)])[0]
        return None if found.op == DELETE else found


def bulk_import(layout: Layout, bulk: Bulk) -> str:
    """Makes the objects and one commit on top of the branch, then points the branch there. Gives the commit id.
    No webhook is sent: a hard reset runs no hooks."""
    region = layout.region(bulk.region)
    lakefs = LakeFS(region.lakefs_url)
    namespace: str = lakefs.repository(bulk.repository)["storage_namespace"]
    bucket, _, prefix = namespace.removeprefix("s3://").rstrip("/").partition("/")
    entries = list(_entries(bulk))
    for door, where in _stores(layout, region, bulk):
        for part in _parts(entries):
            door.write((_stored(where, prefix, bulk, entry) for entry in part), journal=not bulk.replicated)
    parent = _commit(lakefs.commit_record(bulk.repository, lakefs.head(bulk.repository, bulk.branch)))
    committed = Committed(SideBlobs(SideDoor(region.s3_url)), bucket, prefix, FileCache())
    metarange_id = committed.apply(parent.metarange_id, {entry.path: entry for entry in entries})
    return publish(lakefs, bulk.repository, bulk.branch, metarange_id, bulk.message, {"objects": str(bulk.objects)})


def publish(
    lakefs: LakeFS, repository: str, branch: str, metarange_id: str, message: str, metadata: Mapping[str, str] = {}
) -> str:
    """A commit of a metarange that is there already, on top of a branch; gives its id."""
    commit = new_commit(
        parents=(_commit(lakefs.commit_record(repository, lakefs.head(repository, branch))),),
        committer="admin",
        message=message,
        creation_date=int(time.time()),
        metarange_id=metarange_id,
        metadata=metadata,
    )
    record = {
        "id": commit.id,
        "version": commit.version,
        "committer": commit.committer,
        "message": commit.message,
        "meta_range_id": commit.metarange_id,
        "creation_date": commit.creation_date,
        "parents": list(commit.parents),
        "metadata": dict(commit.metadata),
        "generation": commit.generation,
    }
    lakefs.copy_record(repository, record, force=False)
    lakefs.hard_reset(repository, branch, commit.id)
    return commit.id


def _commit(record: Mapping[str, object]) -> Commit:
    return Commit(
        id=str(record["id"]),
        parents=tuple(record["parents"]),  # type: ignore[arg-type]
        committer=str(record["committer"]),
        message=str(record["message"]),
        creation_date=int(str(record["creation_date"])),
        metarange_id=str(record["meta_range_id"]),
        generation=int(str(record["generation"])),
    )


def _stores(layout: Layout, region: Region, bulk: Bulk) -> Iterator[tuple[SideDoor, str]]:
    for other in layout.regions:
        if other == region or bulk.replicated:
            yield SideDoor(other.s3_url), other.bucket


def _entries(bulk: Bulk) -> Iterator[Entry]:
    addresses = AddressBook()
    now = Timestamp(int(time.time()))
    blank = Entry(b"", "", bulk.size, "", now, {}, "application/octet-stream")
    for number in range(bulk.objects):
        path = f"{bulk.prefix}{number // 1000:04d}/{number:08d}.bin"
        etag = hashlib.md5(_body(bulk, path), usedforsecurity=False).hexdigest()
        yield replace(blank, path=path.encode(), address=addresses.next(), etag=etag)


def _body(bulk: Bulk, path: str) -> bytes:
    return path.encode()[-bulk.size :].rjust(bulk.size, b".")


def _stored(bucket: str, prefix: str, bulk: Bulk, entry: Entry) -> Stored:
    key = f"{prefix}/{entry.address}" if prefix else entry.address
    metadata = {"Content-Type": entry.content_type}
    return Stored(bucket, key, _body(bulk, entry.path.decode()), entry.etag, metadata)


def _parts(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    for start in range(0, len(entries), AT_ONCE):
        yield entries[start : start + AT_ONCE]
