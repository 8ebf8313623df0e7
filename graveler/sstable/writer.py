"""Writes a table file as lakeFS's writer (Pebble, RocksDB version 2 format) does, block by block.

The layout follows Pebble's decisions closely (when a block ends, how a separator is shortened, which properties
stand in the file), because lakeFS puts its own running estimate of the file's size into the metarange.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from graveler.sstable.blocks import BlockBuilder, Handle, pack, shared_prefix
from graveler.sstable.reader import (
    BINARY_SEARCH_INDEX,
    INDEX_TYPE,
    MAGIC,
    PROPERTIES_NAME,
    SET_TRAILER,
    TWO_LEVEL_INDEX,
)
from graveler.wire import put_uvarint

BLOCK_SIZE = 4096
RESTART_INTERVAL = 16
# Pebble reserves the longest two varints when it asks whether a handle still fits an index block.
_HANDLE_RESERVE = 20
_SEPARATOR_TRAILER = ((1 << 56) - 1 << 8 | 17).to_bytes(8, "little")
# What Pebble puts into the index of a table without records: no key, kind 255 (invalid).
_NO_KEY = (255).to_bytes(8, "little")
_COMPRESSION_OPTIONS = (
    b"window_bits=-14; level=32767; strategy=0; max_dict_bytes=0; zstd_max_train_bytes=0; enabled=0; "
)


class TableWriter:
    """Takes records in ascending order of key, then gives the file's bytes."""

    def __init__(self) -> None:
        self._out = bytearray()
        self._block = BlockBuilder(RESTART_INTERVAL)
        self._index = BlockBuilder(1)
        self._partitions: list[tuple[bytes, bytes]] = []
        self._first_key = b""
        self._last_key: bytes | None = None
        self._data_blocks = self._raw_key_size = self._raw_value_size = 0
        self.count = 0

    @property
    def estimated_size(self) -> int:
        """What lakeFS records as a range's size: blocks so far, the open block, the open index block."""
        return len(self._out) + self._block.estimated_size + self._index.estimated_size

    def add(self, key: bytes, value: bytes) -> None:
        """Appends a record. Raises ValueError when the key does not come after the last one."""
        if self._last_key is not None and key <= self._last_key:
            raise ValueError(f"keys must ascend: {key!r} after {self._last_key!r}")
        internal = key + SET_TRAILER
        if self._block.would_overflow(len(internal), len(value), BLOCK_SIZE):
            self._end_block(_separator(self._last_key or b"", key))
        self._block.add(internal, value, shareable=len(key))
        if self._last_key is None:
            self._first_key = key
        self._last_key = key
        self.count += 1
        self._raw_key_size += len(internal)
        self._raw_value_size += len(value)

    def statistics(self, kind: str) -> dict[str, bytes]:
        """The properties that lakeFS adds to a file of this type."""
        return {
            "type": kind.encode(),
            "min_key": self._first_key,
            "max_key": self._last_key or b"",
            "count": b"%d" % self.count,
            "estimated_size_bytes": b"%d" % self.estimated_size,
        }

    def finish(self, user_properties: Mapping[str, bytes]) -> bytes:
        """The whole file. Ends the use of this writer."""
        self._end_last_block()
        properties = self._own_properties(len(self._out))
        index = self._write_index(properties)
        properties |= {key.encode(): value for key, value in user_properties.items()}
        metaindex = BlockBuilder(1)
        metaindex.add(PROPERTIES_NAME, self._write_properties(properties).encode())
        self._write_footer(self._write(metaindex.finish(), compress=False), index)
        return bytes(self._out)

    def _write(self, plain: bytes, *, compress: bool = True) -> Handle:
        stored = pack(plain, compress=compress)
        handle = Handle(len(self._out), len(stored) - 5)
        self._out += stored
        return handle

    def _end_block(self, separator: bytes) -> None:
        handle = self._write(self._block.finish())
        if self._index.would_overflow(len(separator), _HANDLE_RESERVE, BLOCK_SIZE):
            self._end_partition()
        self._index.add(separator, handle.encode(), shareable=len(separator) - 8)
        self._data_blocks += 1

    def _end_last_block(self) -> None:
        # A table without records still has one, empty, block.
        if self._block.count or not self._index.count:
            self._end_block(_bumped(self._last_key, 0) if self._last_key is not None else _NO_KEY)

    def _end_partition(self) -> None:
        last = self._index.last_key
        self._partitions.append((last, self._index.finish()))

    def _write_index(self, properties: dict[bytes, bytes]) -> Handle:
        """Writes the index and notes its shape in the properties."""
        if not self._partitions:
            properties[b"rocksdb.index.size"] = put_uvarint(self._index.estimated_size + 5)
            properties[INDEX_TYPE] = struct.pack("<I", BINARY_SEARCH_INDEX)
            return self._write(self._index.finish())
        self._end_partition()
        top = BlockBuilder(1)
        for separator, plain in self._partitions:
            top.add(separator, self._write(plain).encode(), shareable=len(separator) - 8)
        size = sum(len(plain) for _, plain in self._partitions)
        properties[b"rocksdb.index.size"] = put_uvarint(size + top.estimated_size + 5)
        properties[b"rocksdb.index.partitions"] = put_uvarint(len(self._partitions))
        properties[b"rocksdb.top-level.index.size"] = put_uvarint(top.estimated_size)
        properties[INDEX_TYPE] = struct.pack("<I", TWO_LEVEL_INDEX)
        return self._write(top.finish())

    def _own_properties(self, data_size: int) -> dict[bytes, bytes]:
        counts = {
            b"rocksdb.column.family.id": (1 << 31) - 1,
            b"rocksdb.data.size": data_size,
            b"rocksdb.num.data.blocks": self._data_blocks,
            b"rocksdb.num.entries": self.count,
            b"rocksdb.raw.key.size": self._raw_key_size,
            b"rocksdb.raw.value.size": self._raw_value_size,
        }
        return _FIXED_PROPERTIES | {key: put_uvarint(value) for key, value in counts.items()}

    def _write_properties(self, properties: dict[bytes, bytes]) -> Handle:
        # One restart point for the whole block: it is always read from its beginning.
        block = BlockBuilder(1 << 31)
        for key in sorted(properties):
            block.add(key, properties[key])
        return self._write(block.finish(), compress=False)

    def _write_footer(self, metaindex: Handle, index: Handle) -> None:
        handles = metaindex.encode() + index.encode()
        self._out += b"\x01" + handles.ljust(40, b"\0") + struct.pack("<I", 2) + MAGIC


def _separator(a: bytes, b: bytes) -> bytes:
    """The shortest internal key from the last key of a block up to the first of the next."""
    i = shared_prefix(a, b)
    if i >= len(a) or a[i] >= b[i]:
        return a + SET_TRAILER
    if i < len(b) - 1 or a[i] + 1 < b[i]:
        return a[:i] + bytes([a[i] + 1]) + _SEPARATOR_TRAILER
    return _bumped(a, i + 1)


def _bumped(a: bytes, start: int) -> bytes:
    """Cuts `a` after its first byte from `start` on that can be raised by one, and raises it: from the first byte on,
    that is the shortest internal key at or after the last key of a file."""
    for i in range(start, len(a)):
        if a[i] != 0xFF:
            return a[:i] + bytes([a[i] + 1]) + _SEPARATOR_TRAILER
    return a + SET_TRAILER


_ZERO = put_uvarint(0)
_FIXED_PROPERTIES = {
    b"rocksdb.block.based.table.prefix.filtering": b"0",
    b"rocksdb.block.based.table.whole.key.filtering": b"0",
    b"rocksdb.comparator": b"leveldb.BytewiseComparator",
    b"rocksdb.compression": b"Snappy",
    b"rocksdb.compression_options": _COMPRESSION_OPTIONS,
    b"rocksdb.creation.time": _ZERO,
    b"rocksdb.deleted.keys": _ZERO,
    b"rocksdb.external_sst_file.global_seqno": bytes(8),
    b"rocksdb.external_sst_file.version": struct.pack("<I", 2),
    b"rocksdb.filter.size": _ZERO,
    b"rocksdb.fixed.key.length": _ZERO,
    b"rocksdb.format.version": _ZERO,
    b"rocksdb.index.key.is.user.key": _ZERO,
    b"rocksdb.index.value.is.delta.encoded": _ZERO,
    b"rocksdb.merge.operands": _ZERO,
    b"rocksdb.merge.operator": b"pebble.concatenate",
    b"rocksdb.num.range-deletions": _ZERO,
    b"rocksdb.oldest.key.time": _ZERO,
    b"rocksdb.prefix.extractor.name": b"nullptr",
    b"rocksdb.property.collectors": b"[static]",
}
