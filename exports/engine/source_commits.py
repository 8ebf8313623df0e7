"""What a commit of a source holds, read from the source's own namespace: all of it verified by its id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TypeVar

from core.errors import Corrupt, NotFound
from core.exporting.branch_line import Line, line_between
from core.types import Commit
from deployment.wiring import clients
from exports.models import Export
from graveler.entries import Entry
from graveler.errors import FormatError
from graveler.metarange import RangeRef, read_metarange

METADATA_PREFIX = "_lakefs"
READ = 1000
"""So many commits of a branch's log are read; of more it is said that there are more."""
Parsed = TypeVar("Parsed")


def commit_of(export: Export, ref: str) -> Commit:
    """The record of a commit."""
    return clients.lakefs(export.region).get_commit(export.repository, ref)


def line_after(export: Export, head: str, base: str) -> Line | None:
    """The commits of the branch's own line after `base` up to `head`. None where `head` does not come after it."""
    page = clients.lakefs(export.region).log_commits(export.repository, head, amount=READ)
    return line_between(page.results, head, base)


def ranges_of(export: Export, ref: str) -> list[RangeRef]:
    """The ranges of a commit in order of key; none for "" and for a commit without files. NotFound, Corrupt."""
    metarange_id = commit_of(export, ref).metarange_id if ref else ""
    return _read(export, metarange_id, read_metarange) if metarange_id else []


def entries_of(export: Export, refs: list[RangeRef]) -> Iterator[Entry]:
    """The entries of ranges, one range in memory at a time. NotFound, Corrupt."""
    from graveler.ranges import read_range  # needs Spark's packages, and the pages start without them

    for ref in refs:
        yield from _read(export, ref.id, read_range)


def read_proven(namespace: str, file_id: str, fetch: Callable[[str], bytes], read: Callable[..., Parsed]) -> Parsed:
    """A metadata file that its reader has verified, from the local disk, else fetched: only such a file is kept there,
    and what is damaged there is fetched again. Corrupt; what `fetch`, which takes the address, raises."""
    uri = f"{namespace.rstrip('/')}/{METADATA_PREFIX}/{file_id}"
    parse = partial(read, expected_id=file_id, file=uri)
    kept = clients.local_cache().get(file_id)
    if kept is not None:
        with suppress(FormatError):
            return parse(kept)
    data = fetch(uri)
    try:
        parsed = parse(data)
    except FormatError as error:
        raise Corrupt(str(error), hint="Restore this file of the repository's metadata") from error
    clients.local_cache().put(file_id, data)
    return parsed


def _read(export: Export, file_id: str, read: Callable[..., Parsed]) -> Parsed:
    return read_proven(export.storage_namespace, file_id, partial(_fetch, export), read)


def _fetch(export: Export, uri: str) -> bytes:
    try:
        return clients.objects(export.region).get(uri)
    except NotFound as error:
        raise NotFound(f"{uri} is missing: the commit's metadata is gone at the source") from error
