"""A whole table file: footer, metaindex, properties, one- or two-level index, data blocks.

The reader takes a file only if it understands every byte of it: blocks must lie side by side from the
first byte to the footer, each with a right checksum. So damage has no place to hide in, not even in padding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from graveler.errors import FormatError
from graveler.identity import STATISTICS
from graveler.sstable.blocks import MAX_UNPACKED_SIZE, TRAILER_SIZE, Handle, decode_handle, records_of, unpack
from graveler.sstable.lanes import Ints, Irregular, index_handles
from graveler.wire import Malformed

FOOTER_SIZE = 53
MAGIC = bytes.fromhex("f7cff485b741e288")
PROPERTIES_NAME = b"rocksdb.properties"
INDEX_TYPE = b"rocksdb.block.based.table.index.type"
BINARY_SEARCH_INDEX, TWO_LEVEL_INDEX = 0, 2
# Sequence number 0, kind 1 (a value is set): all that lakeFS ever writes after a user key.
SET_TRAILER = (1).to_bytes(8, "little")
# lakeFS ends a file near 20 MiB, unless it is told otherwise.
MAX_FILE_SIZE = 1 << 28


@dataclass(frozen=True, slots=True)
class Table:
    """An opened file. `offsets` and `sizes` tell its data blocks in order; their checksums are checked when
    they are read."""

    data: bytes
    file: str
    offsets: Ints
    sizes: Ints
    properties: dict[bytes, bytes]

    def wrong(self, problem: Malformed, handle: Handle | None = None) -> FormatError:
        """The error for a problem found in one block, or somewhere in the records."""
        return FormatError(self.file, handle.offset if handle else 0, str(problem))

    def blocks(self) -> Iterator[tuple[Handle, bytes]]:
        """Each data block with its plain bytes."""
        total = 0
        for handle in map(Handle, self.offsets.tolist(), self.sizes.tolist()):
            block = _plain(self.data, self.file, handle)
            total += len(block)
            if total > MAX_UNPACKED_SIZE:
                raise FormatError(self.file, handle.offset, f"at most {MAX_UNPACKED_SIZE} bytes unpacked")
            yield handle, block

    def records(self) -> Iterator[tuple[bytes, bytes]]:
        """(user key, value) of each record; keys ascend."""
        last: bytes | None = None
        budget = key_budget(len(self.data))
        for handle, block in self.blocks():
            try:
                for internal, value in records_of(block):
                    key = _user_key(internal)
                    if last is not None and key <= last:
                        raise Malformed("keys in ascending order")
                    last = key
                    budget -= len(key)
                    if budget < 0:
                        raise Malformed("keys of a total length in proportion to the file")
                    yield key, value
            except Malformed as problem:
                raise self.wrong(problem, handle) from problem

    def user_properties(self) -> dict[str, bytes]:
        """What lakeFS added: type, min_key, max_key, count, estimated_size_bytes and so on."""
        return {k.decode(): v for k, v in self.properties.items() if not k.startswith(b"rocksdb.")}

    def identifying_properties(self) -> dict[str, str]:
        """The user properties that the file's id covers."""
        try:
            return {k: v.decode() for k, v in self.user_properties().items() if k not in STATISTICS}
        except UnicodeDecodeError as error:
            raise FormatError(self.file, 0, "properties in UTF-8") from error

    def expect_type(self, kind: str) -> None:
        """Raises FormatError unless this is a plain file of that type ("ranges", "metaranges")."""
        properties = self.identifying_properties()
        if properties != {"type": kind}:
            raise FormatError(self.file, 0, f"a file of type {kind}, not {_describe(properties)}")

    def expect_id(self, actual: str, expected: str) -> None:
        """Raises FormatError if the recomputed id is not the one the file goes by."""
        if expected and actual != expected:
            raise FormatError(self.file, 0, f"content of id {expected}, not {actual}")

    def expect_count(self, count: int) -> None:
        """Raises FormatError unless the file tells the count of records that was found in it. (Not so for min_key:
        old lakeFS versions wrote a wrong one.)"""
        stored = self.user_properties().get("count")
        if stored != b"%d" % count:
            raise FormatError(self.file, 0, f"{stored!r} records as property count tells, not {count}")


def key_budget(file_size: int) -> int:
    """How long all keys of a file may be together: prefix compression must not blow up memory."""
    return min(32 * file_size + (1 << 20), 1 << 30)


def open_table(data: bytes, file: str = "") -> Table:
    """Reads footer, metaindex, properties and index, all verified. Raises FormatError."""
    metaindex, index = _footer(data, file)
    properties_handle = _metaindex(data, file, metaindex)
    properties = _properties(data, file, properties_handle)
    upper = _index_blocks(data, file, index, properties)
    offsets, sizes = _data_blocks(data, file, upper)
    _expect_tiled(data, file, offsets, sizes, [*upper, properties_handle, metaindex])
    return Table(data, file, offsets, sizes, properties)


def _footer(data: bytes, file: str) -> tuple[Handle, Handle]:
    base = len(data) - FOOTER_SIZE
    if base < 0 or len(data) > MAX_FILE_SIZE:
        raise FormatError(file, 0, f"a table of {FOOTER_SIZE} to {MAX_FILE_SIZE} bytes, not {len(data)}")
    footer = data[base:]
    if footer[-8:] != MAGIC:
        raise FormatError(file, len(data) - 8, "the magic number of a RocksDB table (is the file whole?)")
    if footer[-12:-8] != struct.pack("<I", 2):
        raise FormatError(file, len(data) - 12, "table version 2")
    if footer[0] != 1:
        raise FormatError(file, base, "checksum type 1 (CRC32C)")
    try:
        metaindex, pos = decode_handle(footer[:41], 1)
        index, pos = decode_handle(footer[:41], pos)
    except Malformed as problem:
        raise FormatError(file, base + 1, str(problem)) from problem
    # Comparing with our own spelling also refuses varints that are longer than needed.
    if footer[1:41] != (metaindex.encode() + index.encode()).ljust(40, b"\0"):
        raise FormatError(file, base + 1, "two block handles, then zeros")
    return metaindex, index


def _plain(data: bytes, file: str, handle: Handle) -> bytes:
    _expect_inside(data, file, handle)
    try:
        return unpack(data[handle.offset : handle.end])
    except Malformed as problem:
        raise FormatError(file, handle.offset, str(problem)) from problem


def _expect_inside(data: bytes, file: str, handle: Handle) -> None:
    if handle.end > len(data) - FOOTER_SIZE:
        raise FormatError(file, handle.offset, f"a block of {handle.size} bytes before the footer")


def _records(data: bytes, file: str, handle: Handle) -> list[tuple[bytes, bytes]]:
    try:
        return list(records_of(_plain(data, file, handle)))
    except Malformed as problem:
        raise FormatError(file, handle.offset, str(problem)) from problem


def _handles(data: bytes, file: str, index: Handle) -> list[Handle]:
    """The blocks that an index block points to."""
    handles = []
    for _, value in _records(data, file, index):
        try:
            handle, end = decode_handle(value)
        except Malformed as problem:
            raise FormatError(file, index.offset, str(problem)) from problem
        if end != len(value):
            raise FormatError(file, index.offset, "a block handle and nothing after it")
        _expect_inside(data, file, handle)
        handles.append(handle)
    return handles


def _metaindex(data: bytes, file: str, metaindex: Handle) -> Handle:
    names = [name for name, _ in _records(data, file, metaindex)]
    if names != [PROPERTIES_NAME]:
        raise FormatError(file, metaindex.offset, "a metaindex that names the properties block and nothing else")
    return _handles(data, file, metaindex)[0]


def _properties(data: bytes, file: str, handle: Handle) -> dict[bytes, bytes]:
    properties = dict(_records(data, file, handle))
    if not all(key.isascii() for key in properties):
        raise FormatError(file, handle.offset, "property names in ASCII")
    return properties


def _index_blocks(data: bytes, file: str, index: Handle, properties: dict[bytes, bytes]) -> list[Handle]:
    """The index blocks in the order of the file. With two levels, those that point to data come first."""
    _expect_inside(data, file, index)
    kind = int.from_bytes(properties.get(INDEX_TYPE, b"\xff"), "little")
    if kind == BINARY_SEARCH_INDEX:
        return [index]
    if kind != TWO_LEVEL_INDEX:
        raise FormatError(file, index.offset, f"index type 0 or 2, not {kind}")
    lower = _handles(data, file, index)
    # One after the other, so that a partition named twice is not read over and over.
    _expect_ascending(file, lower)
    return [*lower, index]


def _data_blocks(data: bytes, file: str, upper: list[Handle]) -> tuple[Ints, Ints]:
    """(offsets, sizes) of the data blocks, from the index blocks that point to them."""
    lowest = upper[:-1] or upper
    try:
        return index_handles(data, np.array([h.offset for h in lowest]), np.array([h.size for h in lowest]))
    except Irregular:
        handles = [handle for part in lowest for handle in _handles(data, file, part)]
        return np.array([h.offset for h in handles], np.int64), np.array([h.size for h in handles], np.int64)


def _expect_ascending(file: str, handles: list[Handle]) -> None:
    for before, after in pairwise(handles):
        if after.offset != before.end:
            raise FormatError(file, after.offset, f"the next index block at byte {before.end}")


def _expect_tiled(data: bytes, file: str, offsets: Ints, sizes: Ints, after: list[Handle]) -> None:
    """Every byte before the footer belongs to exactly one block."""
    starts = np.append(offsets, [handle.offset for handle in after])
    ends = np.append(offsets + sizes + TRAILER_SIZE, [handle.end for handle in after])
    expected = np.append(0, ends)
    actual = np.append(starts, len(data) - FOOTER_SIZE)
    wrong = np.flatnonzero(expected != actual)
    if len(wrong):
        at = int(wrong[0])
        raise FormatError(file, int(expected[at]), f"the next block here, not at byte {actual[at]}")


def _user_key(internal: bytes) -> bytes:
    if internal[-8:] != SET_TRAILER:
        raise Malformed("a key that ends in sequence number 0 and kind 1 (set)")
    return internal[:-8]


def _describe(properties: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(properties.items())) or "none"
