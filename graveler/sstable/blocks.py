"""One block of a table: prefix-compressed records, restart points, Snappy, CRC32C.

Format: RocksDB's block based table, version 2, as Pebble writes it
(github.com/facebook/rocksdb/wiki/Rocksdb-BlockBasedTable-Format).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import cramjam
import google_crc32c

from graveler.wire import Malformed, get_uvarint, put_uvarint

TRAILER_SIZE = 5
NO_COMPRESSION, SNAPPY = 0, 1
# Snappy's densest element copies 64 bytes and takes 3; a header that promises more is a lie.
SNAPPY_MAX_RATIO = 22
MAX_BLOCK_SIZE = 1 << 28
# All blocks of a file together; lakeFS's own limit on a file is near 20 MiB.
MAX_UNPACKED_SIZE = 1 << 30
MAX_KEY_SIZE = 1 << 16

_CRC_MASK_DELTA = 0xA282EAD8


@dataclass(frozen=True, slots=True)
class Handle:
    """Where a block lies in its file; the trailer of 5 bytes follows it."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """The first byte after the block and its trailer."""
        return self.offset + self.size + TRAILER_SIZE

    def encode(self) -> bytes:
        """Two varints."""
        return put_uvarint(self.offset) + put_uvarint(self.size)


def decode_handle(data: bytes, pos: int = 0) -> tuple[Handle, int]:
    """Returns (handle, position after it)."""
    offset, pos = get_uvarint(data, pos)
    size, pos = get_uvarint(data, pos)
    return Handle(offset, size), pos


def masked_crc(block_and_type: bytes) -> int:
    """CRC32C as the trailer keeps it: rotated and shifted, so that a CRC of a CRC stays sound."""
    crc = int(google_crc32c.value(block_and_type))
    return ((crc >> 15 | crc << 17) + _CRC_MASK_DELTA) & 0xFFFFFFFF


def check_stored(stored: bytes) -> None:
    """Raises Malformed unless the trailer at the end of `stored` belongs to the block before it."""
    (checksum,) = struct.unpack("<I", stored[-4:])
    if checksum != masked_crc(stored[:-4]):
        raise Malformed("a block that agrees with its checksum")


def unpacked_size(stored: bytes) -> int:
    """How many bytes a checked block unpacks to; refuses sizes that Snappy can't reach."""
    packed = len(stored) - TRAILER_SIZE
    if stored[packed] == NO_COMPRESSION:
        return packed
    if stored[packed] != SNAPPY:
        raise Malformed(f"compression 0 (none) or 1 (Snappy), not {stored[packed]}")
    size, _ = get_uvarint(stored[: packed if packed < 10 else 10], 0)
    if size > min(packed * SNAPPY_MAX_RATIO, MAX_BLOCK_SIZE):
        raise Malformed(f"a block of a size that {packed} bytes can hold, not {size}")
    return size


def unpack(stored: bytes) -> bytes:
    """Plain bytes of a block, from what the file holds (trailer included). Verifies the checksum."""
    check_stored(stored)
    size = unpacked_size(stored)
    if stored[-TRAILER_SIZE] == NO_COMPRESSION:
        return stored[:-TRAILER_SIZE]
    try:
        plain = bytes(cramjam.snappy.decompress_raw(stored[:-TRAILER_SIZE]))
    except cramjam.DecompressionError as error:
        raise Malformed("a block that Snappy can unpack") from error
    if len(plain) != size:
        raise Malformed(f"a block of {size} bytes, not {len(plain)}")
    return plain


def pack(plain: bytes, *, compress: bool) -> bytes:
    """A block with its trailer. Snappy is kept only where it saves an eighth, as Pebble does."""
    kind, body = NO_COMPRESSION, plain
    if compress:
        packed = bytes(cramjam.snappy.compress_raw(plain))
        if len(packed) < len(plain) - len(plain) // 8:
            kind, body = SNAPPY, packed
    typed = body + bytes([kind])
    return typed + struct.pack("<I", masked_crc(typed))


def restarts_of(block: bytes) -> tuple[int, ...]:
    """Offsets of the records that spell their key in full; the last element is where the records end."""
    count = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 - 4 * count
    if len(block) < 8 or count < 1 or end < 0:
        raise Malformed("a count of restart points that fits the block")
    return (*struct.unpack_from(f"<{count}I", block, end), end)


def records_of(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(key as stored, value) of each record."""
    *_, end = restarts_of(block)
    pos, key = 0, b""
    while pos < end:
        if end - pos >= 3 and (block[pos] | block[pos + 1] | block[pos + 2]) < 0x80:
            shared, unshared, size = block[pos], block[pos + 1], block[pos + 2]
            pos += 3
        else:
            shared, pos = get_uvarint(block, pos)
            unshared, pos = get_uvarint(block, pos)
            size, pos = get_uvarint(block, pos)
        if shared > len(key) or unshared + size > end - pos or shared + unshared > MAX_KEY_SIZE:
            raise Malformed("a record that fits its block")
        key = key[:shared] + block[pos : pos + unshared]
        pos += unshared
        yield key, block[pos : pos + size]
        pos += size


def shared_prefix(a: bytes, b: bytes) -> int:
    """Length of the common beginning of two byte strings."""
    n = min(len(a), len(b))
    if a[:n] == b[:n]:
        return n
    differing = int.from_bytes(a[:n], "big") ^ int.from_bytes(b[:n], "big")
    return n - (differing.bit_length() + 7) // 8


class BlockBuilder:
    """Collects records into one block. `shareable` limits the shared prefix, to Pebble's user key."""

    def __init__(self, restart_interval: int) -> None:
        self._interval = restart_interval
        self.clear()

    def clear(self) -> None:
        """Begins an empty block."""
        self.count = 0
        self.last_key = b""
        self._parts: list[bytes] = []
        self._size = 0
        self._restarts: list[int] = []

    def add(self, key: bytes, value: bytes, shareable: int | None = None) -> None:
        """Appends a record; keys must ascend."""
        shared = 0
        if self.count % self._interval == 0:
            self._restarts.append(self._size)
        else:
            shared = shared_prefix(key if shareable is None else key[:shareable], self.last_key)
        head = put_uvarint(shared) + put_uvarint(len(key) - shared) + put_uvarint(len(value))
        self._parts += (head, key[shared:], value)
        self._size += len(head) + len(key) - shared + len(value)
        self.last_key = key
        self.count += 1

    @property
    def estimated_size(self) -> int:
        """Bytes of the block if it were finished now."""
        return self._size + 4 * len(self._restarts) + 4

    def would_overflow(self, key_size: int, value_size: int, target: int) -> bool:
        """Pebble's rule: end the block before this record? Considered from 90 % of the target size on."""
        size = self.estimated_size
        if self.count == 0 or size <= (target * 90 + 99) // 100:
            return False
        size += key_size + value_size + 4 + len(put_uvarint(key_size)) + len(put_uvarint(value_size))
        if self.count % self._interval == 0:
            size += 4
        return size > target

    def finish(self) -> bytes:
        """The block's plain bytes; the builder is empty afterwards."""
        restarts = self._restarts or [0]
        tail = struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
        block = b"".join([*self._parts, tail])
        self.clear()
        return block
