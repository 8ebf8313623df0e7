"""Metadata files on a disk, named by their ids as in a storage namespace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from graveler.entries import Entry
from graveler.errors import FormatError
from graveler.metarange import METARANGES, RangeRef, read_metarange
from graveler.ranges import RANGES, read_range
from graveler.sstable.reader import MAX_FILE_SIZE, Table, open_table

_ID = re.compile(r"[0-9a-f]{64}")


def claimed_id(path: Path) -> str:
    """The id that a file goes by, "" if its name is none."""
    return path.name if _ID.fullmatch(path.name) else ""


def load(path: Path) -> bytes:
    """The bytes of a file. Raises FormatError before reading one that can't be a table, OSError if unreadable."""
    size = path.stat().st_size
    if size > MAX_FILE_SIZE:
        raise FormatError(str(path), 0, f"a table of at most {MAX_FILE_SIZE} bytes, not {size}")
    return path.read_bytes()


def open_file(path: Path) -> Table:
    """An opened table whose id is not verified yet."""
    return open_table(load(path), str(path))


def kind_of(path: Path) -> str:
    """ "ranges" or "metaranges". Raises FormatError for anything else, such as dumps of refs."""
    table = open_file(path)
    properties = table.identifying_properties()
    if properties not in ({"type": RANGES}, {"type": METARANGES}):
        raise FormatError(str(path), 0, "a range of entries or a metarange (this is a dump of refs or foreign)")
    return properties["type"]


def entries_in(path: Path) -> Iterator[Entry]:
    """The entries of a range file, verified."""
    return read_range(load(path), expected_id=claimed_id(path), file=str(path))


def ranges_in(path: Path) -> list[RangeRef]:
    """The ranges of a metarange file, verified."""
    return read_metarange(load(path), expected_id=claimed_id(path), file=str(path))


def range_beside(metarange: Path, ref: RangeRef) -> Iterator[Entry]:
    """The entries of a range in the folder of its metarange."""
    path = metarange.parent / ref.id
    return read_range(load(path), expected_id=ref.id, file=str(path))
