"""Many blocks at once: numpy steps through every stretch of records of a file in lockstep.

A stretch (lane) runs from one restart point to the next and holds some 16 records, each found only after the one
before it. But the lanes don't depend on each other: step j looks at record j of all of them with a few vector
operations. What doesn't fit this fast form, damage included, raises `Irregular`; the record-by-record reader then
either copes with it or says precisely what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import cramjam
import google_crc32c
import numpy as np
from numpy.typing import NDArray

from graveler.sstable.blocks import MAX_BLOCK_SIZE, MAX_UNPACKED_SIZE, NO_COMPRESSION, SNAPPY, SNAPPY_MAX_RATIO

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Bools = NDArray[np.bool_]

# Reads may start this far before a record, or go this far past it: more than any length in the fast form.
PADDING = 1 << 15
# Records in one lane. Pebble makes it 16; with far more, steps would cost more than they save.
MAX_STEPS = 1 << 10

_CRC_MASK_DELTA = np.uint32(0xA282EAD8)


class Irregular(Exception):
    """The bytes don't fit the fast form. Not an error by itself."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The plain bytes of some blocks, one after the other, padded in front and behind."""

    buffer: NDArray[np.uint8]
    starts: Ints
    ends: Ints

    @property
    def words(self) -> Words:
        """The 8 bytes from each position on, as little-endian numbers (overlapping, not copied)."""
        return np.ndarray((len(self.buffer) - 7,), "<u8", self.buffer, 0, (1,))


@dataclass(frozen=True, slots=True)
class Records:
    """Where each record lies, in the order of the file. Positions are those of the buffer.

    `shared` bytes of a key come from the record before it, `unshared` lie at `keys`. `lanes` are the indices
    of each lane's first record, `lengths` the number of records in it.
    """

    keys: Ints
    shared: Ints
    unshared: Ints
    values: Ints
    sizes: Ints
    lanes: Ints
    lengths: Ints


def require(condition: bool | np.bool_) -> None:
    """Leaves the fast form unless the condition holds."""
    if not condition:
        raise Irregular


def unpack_blocks(data: bytes, offsets: Ints, sizes: Ints) -> Unpacked:
    """Checks and unpacks the blocks at these places of a file."""
    raw = np.frombuffer(data, np.uint8)
    kinds = raw[offsets + sizes]
    require(((kinds == SNAPPY) | (kinds == NO_COMPRESSION)).all())
    _require_checksums(data, offsets, offsets + sizes + 1)
    plain, packed = sizes.copy(), kinds == SNAPPY
    plain[packed] = _promised(raw, offsets[packed], sizes[packed])
    require(int(plain.sum()) <= MAX_UNPACKED_SIZE)
    starts = PADDING + np.cumsum(plain) - plain
    buffer = np.empty(int(plain.sum()) + 2 * PADDING, np.uint8)
    buffer[:PADDING] = buffer[-PADDING:] = 0
    _unpack_into(memoryview(buffer.data), memoryview(data), starts.tolist(), plain.tolist(), offsets, sizes, kinds)
    return Unpacked(buffer, starts, starts + plain)


def _require_checksums(data: bytes, offsets: Ints, ends: Ints) -> None:
    checksum = google_crc32c.value
    spans = zip(offsets.tolist(), ends.tolist(), strict=True)
    checksums = np.array([checksum(data[start:end]) for start, end in spans], np.uint32)
    stored: NDArray[np.uint32] = np.ndarray((len(data) - 3,), "<u4", data, 0, (1,))[ends]
    require(np.array_equal((checksums >> 15 | checksums << 17) + _CRC_MASK_DELTA, stored))


def _promised(raw: NDArray[np.uint8], offsets: Ints, sizes: Ints) -> Ints:
    """The plain sizes that Snappy's headers tell, no more than the packed bytes can hold."""
    size, shift = np.zeros(len(offsets), np.int64), 0
    more: Bools = np.ones(len(offsets), np.bool_)
    for at in range(5):
        byte = raw[offsets + at].astype(np.int64)
        size += np.where(more, (byte & 0x7F) << shift, 0)
        more &= byte >= 0x80
        shift += 7
        if not more.any():
            break
    require(not more.any() and (size <= np.minimum(sizes * SNAPPY_MAX_RATIO, MAX_BLOCK_SIZE)).all())
    return size


def _unpack_into(
    out: memoryview, data: memoryview, starts: list[int], plain: list[int], offsets: Ints, sizes: Ints,
    kinds: NDArray[np.uint8],
) -> None:  # fmt: skip
    decompress = cramjam.snappy.decompress_raw_into
    places = zip(starts, plain, offsets.tolist(), sizes.tolist(), kinds.tolist(), strict=True)
    try:
        for start, room, offset, size, kind in places:
            if kind != SNAPPY:
                out[start : start + room] = data[offset : offset + size]
            elif decompress(data[offset : offset + size], out[start : start + room]) != room:
                raise Irregular
    except cramjam.DecompressionError as error:
        raise Irregular from error


def find_records(unpacked: Unpacked) -> Records:
    """Walks all lanes in lockstep."""
    words = unpacked.words
    position, end = _lanes(unpacked)
    lane = np.arange(len(position))
    lengths = np.zeros(len(position), np.int64)
    steps: list[tuple[Ints, ...]] = []
    while True:
        open_lanes = position < end
        if not open_lanes.all():
            lane, position, end = lane[open_lanes], position[open_lanes], end[open_lanes]
        if not len(lane):
            break
        require(len(steps) < MAX_STEPS)
        header = _headers(words[position], position)
        position = header[0] + header[2] + header[3]
        require((position <= end).all())
        lengths[lane] += 1
        steps.append((lane, *header))
    return _in_order(steps, lengths)


def _lanes(unpacked: Unpacked) -> tuple[Ints, Ints]:
    """Where each lane begins and ends, from the restart points behind each block's records."""
    require(len(unpacked.starts) > 0)
    restarts: NDArray[np.uint32] = np.ndarray((len(unpacked.buffer) - 3,), "<u4", unpacked.buffer, 0, (1,))
    count = restarts[unpacked.ends - 4].astype(np.int64)
    require(((unpacked.ends - unpacked.starts >= 8) & (count >= 1)).all())
    records_end = unpacked.ends - 4 - 4 * count
    require((records_end >= unpacked.starts).all())
    block = np.repeat(np.arange(len(count)), count)
    nth = np.arange(len(block)) - np.repeat(np.cumsum(count) - count, count)
    start = unpacked.starts[block] + restarts[records_end[block] + 4 * nth]
    end = np.append(start[1:], 0)
    last = np.cumsum(count) - 1
    end[last] = records_end
    # Restart points ascend, the first is the block's beginning: so the lanes cover all records exactly once.
    require((start[last - count + 1] == unpacked.starts).all() and (start <= end).all())
    return start, end


def _headers(word: Words, position: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """(key position, shared, unshared, value size) from the first 8 bytes of records."""
    if not (word & 0x8080).any():
        shared, unshared = (word & 0x7F).view(np.int64), (word >> 8 & 0x7F).view(np.int64)
        size, length = short_varints(word >> np.uint64(16))
        keys = position + (2 + length)
    else:
        shared, first = short_varints(word)
        word = word >> (8 * first).view(np.uint64)
        unshared, second = short_varints(word)
        size, length = short_varints(word >> (8 * second).view(np.uint64))
        keys = position + first + second + length
    return keys, shared, unshared, size


def short_varints(word: Words) -> tuple[Ints, Ints]:
    """(value, length) of the varints of one or two bytes that the words begin with."""
    two: Words = word >> np.uint64(7) & np.uint64(1)
    if not two.any():
        return (word & 0x7F).view(np.int64), np.array(1)
    require(not ((word & 0x8080) == 0x8080).any())
    return (word & 0x7F | (word >> 1 & 0x3F80) * two).view(np.int64), (two + np.uint64(1)).view(np.int64)


def long_varints(word: Words) -> tuple[Ints, Ints]:
    """(value, length) of the varints of up to eight bytes that the words begin with."""
    stops = ~word & 0x8080808080808080
    require((stops != 0).all())
    within = stops ^ stops - 1
    length = np.bitwise_count(within) >> 3
    # Seven bits of each byte move together: first in pairs of bytes, then of pairs, then of fours.
    bits = word & within & 0x7F7F7F7F7F7F7F7F
    bits = bits & 0x007F007F007F007F | (bits & 0x7F007F007F007F00) >> 1
    bits = bits & 0x00003FFF00003FFF | (bits & 0x3FFF00003FFF0000) >> 2
    bits = bits & 0x000000000FFFFFFF | (bits & 0x0FFFFFFF00000000) >> 4
    return bits.view(np.int64), length.astype(np.int64)


def _in_order(steps: list[tuple[Ints, ...]], lengths: Ints) -> Records:
    """Sorts what the steps found into the order of the file."""
    first = np.cumsum(lengths) - lengths
    columns = np.empty((4, int(lengths.sum())), np.int64)
    for nth, (lane, *fields) in enumerate(steps):
        at = first[lane] + nth
        for column, values in zip(columns, fields, strict=True):
            column[at] = values
    keys, shared, unshared, sizes = columns
    require(not shared[first[lengths > 0]].any())
    require((shared[1:] <= (shared + unshared)[:-1]).all())
    return Records(keys, shared, unshared, keys + unshared, sizes, first, lengths)


def index_handles(data: bytes, offsets: Ints, sizes: Ints) -> tuple[Ints, Ints]:
    """(offsets, sizes) of the blocks that these index blocks point to, in order."""
    unpacked = unpack_blocks(data, offsets, sizes)
    records, words = find_records(unpacked), unpacked.words
    offset, first = long_varints(words[records.values])
    size, second = long_varints(words[records.values + first])
    require((first + second == records.sizes).all())
    return offset, size
