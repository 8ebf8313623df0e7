"""What a commit of a source holds, read from the source's own namespace: ranges verified by their ids."""

from __future__ import annotations

from collections.abc import Iterator

from core.errors import NotFound
from core.types import Commit
from deployment.wiring import clients
from exports.models import Export
from graveler.entries import Entry
from graveler.metarange import RangeRef, read_metarange
from graveler.ranges import read_range

METADATA_PREFIX = "_lakefs"


def commit_of(export: Export, ref: str) -> Commit:
    """The record of a commit."""
    return clients.lakefs(export.region).get_commit(export.repository, ref)


def ranges_of(export: Export, ref: str) -> list[RangeRef]:
    """The ranges of a commit in order of key; none for "" and for a commit without files."""
    if not ref:
        return []
    metarange_id = commit_of(export, ref).metarange_id
    return read_metarange(_metadata(export, metarange_id), expected_id=metarange_id) if metarange_id else []


def entries_of(export: Export, refs: list[RangeRef]) -> Iterator[Entry]:
    """The entries of ranges, one range in memory at a time."""
    for ref in refs:
        yield from read_range(_metadata(export, ref.id), expected_id=ref.id)


def has_range(export: Export, range_id: str) -> bool:
    """Is a range's file there? Raises what the store raises."""
    return clients.objects(export.region).head(_uri(export, range_id)) is not None


def _uri(export: Export, file_id: str) -> str:
    return f"{export.storage_namespace.rstrip('/')}/{METADATA_PREFIX}/{file_id}"


def _metadata(export: Export, file_id: str) -> bytes:
    """A metadata file by id. What the cache holds is verified by its reader, like what the store gives."""
    cached = clients.local_cache().get(file_id)
    if cached is not None:
        return cached
    uri = _uri(export, file_id)
    try:
        data = clients.objects(export.region).get(uri)
    except NotFound as error:
        raise NotFound(f"{uri} is not there: the commit's metadata is gone from the source") from error
    clients.local_cache().put(file_id, data)
    return data
