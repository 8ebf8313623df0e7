"""Ranges: files of up to some hundred thousand entries, sorted by path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from graveler.columns import FULL_SCHEMA, SCHEMA, decode_columns
from graveler.entries import Entry, decode_record, encode_record
from graveler.identity import FileIdentity, file_id
from graveler.metarange import RangeRef
from graveler.splitting import LAKEFS_RULE, SplitRule, Splitter
from graveler.sstable.lanes import Irregular, unpack_blocks
from graveler.sstable.reader import Table, key_budget, open_table
from graveler.sstable.writer import TableWriter
from graveler.wire import Malformed

RANGES = "ranges"


@dataclass(frozen=True, slots=True)
class RangeFile:
    """A written range: `id` is its name in the storage namespace, `data` its bytes. Keys are inclusive."""

    id: str
    data: bytes
    min_key: bytes
    max_key: bytes
    count: int
    estimated_size: int

    @property
    def ref(self) -> RangeRef:
        """How a metarange lists this range."""
        return RangeRef(self.id, self.min_key, self.max_key, self.count, self.estimated_size)


def read_range(data: bytes, *, expected_id: str = "", file: str = "") -> Iterator[Entry]:
    """The entries of a range in order of path. Raises FormatError before the first entry, also if the id is
    not `expected_id` (when given)."""
    table = open_table(data, file or expected_id)
    table.expect_type(RANGES)
    records = list(table.records())
    table.expect_id(file_id(records, table.identifying_properties()), expected_id)
    entries = [entry for _, entry in entries_of(table, records)]
    return iter(entries)


def read_range_columns(data: bytes, *, expected_id: str = "", file: str = "", metadata: bool = False) -> pa.RecordBatch:
    """The entries of a range as Arrow columns: path (binary), address, address_type, size, etag, last_modified (cut to
    microseconds, null if absent); with `metadata` also metadata (map) and content_type. Verifies checksums and the id
    as `read_range` does, in the same pass. Raises FormatError."""
    table = open_table(data, file or expected_id)
    table.expect_type(RANGES)
    identity = FileIdentity()
    try:
        unpacked = unpack_blocks(data, table.offsets, table.sizes)
        batch = decode_columns(unpacked, identity, metadata=metadata, budget=key_budget(len(data)))
    except Irregular:
        return _columns_of(read_range(data, expected_id=expected_id, file=file), metadata)
    table.expect_id(identity.hex(table.identifying_properties()), expected_id)
    table.expect_count(batch.num_rows)
    return batch


def _columns_of(entries: Iterator[Entry], metadata: bool) -> pa.RecordBatch:
    """The same columns made entry by entry, for files that the fast form can't handle."""
    schema = FULL_SCHEMA if metadata else SCHEMA
    return pa.RecordBatch.from_pylist([_row(entry) for entry in entries], schema)


def _row(entry: Entry) -> dict[str, object]:
    modified = entry.last_modified
    row = {name: getattr(entry, name) for name in ("path", "address", "address_type", "size", "etag", "content_type")}
    row["metadata"] = list(entry.metadata.items())
    row["last_modified"] = modified and modified.seconds * 1_000_000 + modified.nanos // 1000
    return row


def entries_of(table: Table, records: list[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, Entry]]:
    """(recorded identity, entry) of each record of an opened range. Raises FormatError."""
    table.expect_count(len(records))
    for key, value in records:
        try:
            yield decode_record(key, value)
        except Malformed as problem:
            raise table.wrong(Malformed(f"{problem} in the entry of {key!r}")) from problem


def write_range(entries: Iterable[Entry]) -> RangeFile:
    """One range of all these entries, whose paths must ascend (ValueError). At least one entry."""
    writer = RangeWriter()
    for entry in entries:
        writer.add(entry)
    return writer.finish()


def write_ranges(entries: Iterable[Entry], rule: SplitRule = LAKEFS_RULE) -> Iterator[RangeFile]:
    """Ranges of these entries, cut where lakeFS would cut them. Paths must ascend (ValueError)."""
    writer, splitter, last = RangeWriter(), Splitter(rule), b""
    for entry in entries:
        if not writer.count and last and entry.path <= last:
            raise ValueError(f"paths must ascend: {entry.path!r} after {last!r}")
        writer.add(entry)
        last = entry.path
        if splitter.ends_after(last, writer.estimated_size):
            yield writer.finish()
            writer = RangeWriter()
    if writer.count:
        yield writer.finish()


class RangeWriter:
    """Takes entries in order of path, then gives the file."""

    def __init__(self) -> None:
        self._table = TableWriter()
        self._identity = FileIdentity()

    @property
    def count(self) -> int:
        """Entries so far."""
        return self._table.count

    @property
    def estimated_size(self) -> int:
        """lakeFS's estimate of the file's bytes so far; never called for nothing, it decides where ranges end."""
        return self._table.estimated_size

    def add(self, entry: Entry) -> None:
        """Appends an entry. Raises ValueError when its path does not come after the last one."""
        self.add_record(entry.path, encode_record(entry))

    def add_record(self, path: bytes, value: bytes) -> None:
        """Appends an entry in its encoded form."""
        self._table.add(path, value)
        self._identity.record(path, value)

    def finish(self) -> RangeFile:
        """The file. Ends the use of this writer. Raises ValueError without entries."""
        if not self.count:
            raise ValueError("a range holds at least one entry")
        size, statistics = self.estimated_size, self._table.statistics(RANGES)
        first, last = statistics["min_key"], statistics["max_key"]
        data = self._table.finish(statistics)
        return RangeFile(self._identity.hex({"type": RANGES}), data, first, last, self.count, size)
