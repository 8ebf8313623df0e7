"""Metaranges: the sorted list of ranges that makes up one commit.

A record's key is the range's last key, its identity the range's id as hex text, its data a RangeData message
(1 min_key, 2 max_key, 3 estimated_size, 4 count; lakeFS's `committed.proto`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graveler.identity import FileIdentity, file_id
from graveler.sstable.reader import Table, open_table
from graveler.sstable.writer import TableWriter
from graveler.values import pack_value, unpack_value
from graveler.wire import BYTES, VARINT, Malformed, fields, put_field, put_int_field, signed64

METARANGES = "metaranges"


@dataclass(frozen=True, slots=True)
class RangeRef:
    """A range as a metarange lists it. Keys are inclusive; `estimated_size` in bytes, as its writer guessed it."""

    id: str
    min_key: bytes
    max_key: bytes
    count: int
    estimated_size: int


@dataclass(frozen=True, slots=True)
class MetarangeFile:
    """A written metarange: `id` is its name in the storage namespace, `data` its bytes."""

    id: str
    data: bytes


def read_metarange(data: bytes, *, expected_id: str = "", file: str = "") -> list[RangeRef]:
    """The ranges of a commit in order. Raises FormatError, also if the id is not `expected_id` (when given)."""
    table = open_table(data, file or expected_id)
    table.expect_type(METARANGES)
    records = list(table.records())
    table.expect_id(file_id(records, table.identifying_properties()), expected_id)
    return refs_of(table, records)


def refs_of(table: Table, records: Sequence[tuple[bytes, bytes]]) -> list[RangeRef]:
    """The ranges in the records of an opened metarange. Raises FormatError."""
    try:
        refs = [_ref(key, value) for key, value in records]
        _expect_disjoint(refs)
    except Malformed as problem:
        raise table.wrong(problem) from problem
    table.expect_count(len(refs))
    return refs


def write_metarange(refs: Sequence[RangeRef]) -> MetarangeFile:
    """The metarange of these ranges, which must ascend and not overlap (ValueError)."""
    writer, identity = TableWriter(), FileIdentity()
    try:
        _expect_disjoint(refs)
    except Malformed as problem:
        raise ValueError(f"expected {problem}") from problem
    for ref in refs:
        value = pack_value(ref.id.encode(), _encode(ref))
        writer.add(ref.max_key, value)
        identity.record(ref.max_key, value)
    return MetarangeFile(identity.hex({"type": METARANGES}), writer.finish(writer.statistics(METARANGES)))


def _encode(ref: RangeRef) -> bytes:
    minimum = put_field(1, ref.min_key) if ref.min_key else b""
    maximum = put_field(2, ref.max_key) if ref.max_key else b""
    return minimum + maximum + put_int_field(3, ref.estimated_size) + put_int_field(4, ref.count)


def _ref(key: bytes, value: bytes) -> RangeRef:
    identity, data = unpack_value(value)
    range_id = identity.decode("ascii", "replace")
    if len(range_id) != 64 or set(range_id) - set("0123456789abcdef"):
        raise Malformed("a range id of 64 hex digits")
    keys, numbers = {1: b"", 2: b""}, {3: 0, 4: 0}
    for number, kind, content in fields(data):
        if number in keys and kind == BYTES and isinstance(content, bytes):
            keys[number] = content
        elif number in numbers and kind == VARINT and isinstance(content, int):
            numbers[number] = content if number == 3 else signed64(content)
        elif number in (1, 2, 3, 4):
            raise Malformed(f"field {number} of another type")
    if keys[2] != key:
        raise Malformed("a range filed under its last key")
    return RangeRef(range_id, keys[1], keys[2], numbers[4], numbers[3])


def _expect_disjoint(refs: Sequence[RangeRef]) -> None:
    before: bytes | None = None
    for ref in refs:
        if ref.min_key > ref.max_key or (before is not None and ref.min_key <= before):
            raise Malformed("ranges in ascending order that don't overlap")
        before = ref.max_key
