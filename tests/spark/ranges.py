"""Ranges and objects for the tests of the check job, written by graveler's writer into a store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from graveler.entries import AddressType, Entry
from graveler.ranges import write_range
from spark_jobs.check.settings import CheckSettings
from tests.s3_double import S3Double, Thing

NAMESPACE = "s3://lake/mirror"
PREFIX = "mirror/"


def settings_for(endpoint: str, **options: object) -> CheckSettings:
    return CheckSettings(**{"namespace": NAMESPACE, "region": "eu-west-1", "endpoint": endpoint, "tries": 2, **options})


def entry(path: str | bytes, *, address: str = "", content: bytes = b"some bytes", **fields: object) -> Entry:
    """An entry whose size and ETag are those of `content`, at data/p0/<hash of the path> unless said otherwise."""
    name = path.encode() if isinstance(path, str) else path
    place = address or f"data/p0/{hashlib.sha1(name).hexdigest()[:20]}"
    given = {"size": len(content), "etag": hashlib.md5(content).hexdigest(), **fields}
    return Entry(name, place, **given)


def entries(count: int, *, partitions: int = 1, start: int = 0) -> list[Entry]:
    """So many entries in order, their objects dealt out to partitions."""
    return [
        entry(f"file-{number:07d}", address=f"data/p{number % partitions:03d}/o{number:09d}")
        for number in range(start, start + count)
    ]


def arrive(store: S3Double, members: Iterable[Entry]) -> None:
    """The objects of these entries are at the destination as the entries describe them."""
    for one in members:
        store.claim(PREFIX + one.address, Thing(one.size, one.etag))


def arrive_range(store: S3Double, members: Sequence[Entry]) -> str:
    """Write a range's file to the destination (not its objects); gives its id."""
    written = write_range(sorted(members, key=lambda one: one.path))
    store.put(f"{PREFIX}_lakefs/{written.id}", written.data)
    return written.id


def imported(path: str, address: str, **fields: object) -> Entry:
    """An entry whose object lies elsewhere."""
    return entry(path, address=address, address_type=AddressType.FULL, **fields)
