"""A range's entries as Arrow columns, and its id, without a Python object per entry.

The file's id covers every byte of every record, so it is computed here from the same buffers: what the digest
took in is what the columns were made of. Raises `Irregular` for whatever the fast form can't handle.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graveler.entries import MAX_SECONDS, AddressType
from graveler.identity import FileIdentity
from graveler.sstable.lanes import (
    Bools,
    Ints,
    Irregular,
    Records,
    Unpacked,
    Words,
    find_records,
    long_varints,
    require,
    short_varints,
)

METADATA_TYPE = pa.map_(pa.string(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("path", pa.binary(), nullable=False),
        pa.field("address", pa.string(), nullable=False),
        pa.field("address_type", pa.uint8(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("etag", pa.string(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", tz="UTC")),
    ]
)
FULL_SCHEMA = pa.schema(
    [
        *SCHEMA,
        pa.field("metadata", METADATA_TYPE, nullable=False),
        pa.field("content_type", pa.string(), nullable=False),
    ]
)
# Longest key of the fast form, with its 8 bytes of sequence number and kind.
MAX_KEY = 1 << 11
# A chunk's key table takes no more than this; small enough for its vectors to stay in the processor's cache.
CHUNK_BYTES = 1 << 20

_IDENTITY_SIZE = 32
# A key's last bytes, sequence number 0 and kind 1 (set), as a little-endian number.
_TRAILER, _SET = 8, 1
# Room for a label such as `|183`.
_LABEL = 8
# Arrow keeps pieces of up to so many bytes in the view itself.
_INLINE = 12


def decode_columns(unpacked: Unpacked, identity: FileIdentity, *, metadata: bool, budget: int) -> pa.RecordBatch:
    """All records of a range as a batch; feeds them to `identity` on the way. `budget` limits the keys' bytes."""
    records = find_records(unpacked)
    sizes = records.shared + records.unshared
    require(int(sizes.sum()) <= budget)
    width = -(-int(sizes.max(initial=8)) // 8)
    require(width * 8 <= MAX_KEY)
    schema = FULL_SCHEMA if metadata else SCHEMA
    parts = _parts(records, max(1, CHUNK_BYTES // (width * 8)))
    chunks = [_decode_part(unpacked, part, width, identity, metadata) for part in parts]
    identity.chunk(b"|" if chunks else b"")
    batch = _joined(schema, chunks)
    path = batch.column("path")
    require(pc.all(pc.less(path[:-1], path[1:]), min_count=0).as_py())
    return batch


def is_full(columns: pa.RecordBatch) -> pa.Array:
    """Which addresses are URIs of their own: by their type, in old entries by a scheme."""
    kind = columns.column("address_type")
    by_scheme = pc.match_substring(columns.column("address"), "://")
    undecided = pc.equal(kind, pa.scalar(AddressType.BY_PREFIX, kind.type))
    return pc.or_(pc.equal(kind, pa.scalar(AddressType.FULL, kind.type)), pc.and_(undecided, by_scheme))


def _parts(records: Records, most: int) -> Iterator[Records]:
    """Cuts the records between lanes into parts of about `most` records."""
    ends = records.lanes + records.lengths
    lane, lanes = 0, len(ends)
    while lane < lanes:
        first = int(records.lanes[lane])
        until = max(lane + 1, int(np.searchsorted(ends, first + most, "right")))
        cut = slice(first, int(ends[until - 1]))
        if cut.stop > cut.start:
            yield Records(
                records.keys[cut],
                records.shared[cut],
                records.unshared[cut],
                records.values[cut],
                records.sizes[cut],
                records.lanes[lane:until] - first,
                records.lengths[lane:until],
            )
        lane = until


def _decode_part(
    unpacked: Unpacked, records: Records, width: int, identity: FileIdentity, metadata: bool
) -> list[pa.Array]:
    rows = _key_rows(unpacked, records, width)
    key_starts = np.arange(len(rows)) * (rows.shape[1] * 8) + _LABEL
    key_sizes = records.shared + records.unshared - _TRAILER
    path = _copied(pa.binary(), _views(rows, key_starts, key_sizes), rows)
    _feed(identity, unpacked, records, rows, key_starts, key_sizes)
    return [path, *_fields(unpacked, records, metadata)]


def _key_rows(unpacked: Unpacked, records: Records, width: int) -> Words:
    """Each key as a row of `width` words after one word of room; what lies behind a key's end means nothing."""
    require((records.unshared >= _TRAILER).all() and (unpacked.words[records.values - _TRAILER] == _SET).all())
    row = np.dtype(f"V{_LABEL + width * 8}")
    stored: NDArray[Any] = np.ndarray((len(unpacked.buffer) - row.itemsize + 1,), row, unpacked.buffer, 0, (1,))
    # So placed that what the file holds of a key already stands in its columns; then step by step the shared rest.
    whole = stored[records.keys - records.shared - _LABEL]
    rows: Words = whole.view(np.uint64).reshape(-1, 1 + width)
    masks = _shared_masks(width)
    for nth in range(1, int(records.lengths.max())):
        at = records.lanes[records.lengths > nth] + nth
        fresh = rows.take(at, axis=0)
        fresh ^= (fresh ^ rows.take(at - 1, axis=0)) & masks.take(records.shared.take(at), axis=0)
        whole[at] = fresh.view(row).ravel()
    return rows


@cache
def _shared_masks(width: int) -> Words:
    """Row n has its first word and n more bytes set: what a key keeps of the one before it."""
    size = _LABEL + width * 8
    chosen = np.arange(size) < np.arange(_LABEL, size + 1)[:, None]
    return np.where(chosen, 0xFF, 0).astype(np.uint8).view(np.uint64)


def _feed(
    identity: FileIdentity, unpacked: Unpacked, records: Records, rows: Words, key_starts: Ints, key_sizes: Ints
) -> None:
    """Spells the records out for the digest: `|5` key `|183` value, each after the one before. Spoils the rows:
    the labels take the room before each key and the place of its trailer."""
    digits, lengths = _labels(max(int(key_sizes.max()), int(records.sizes.max())).bit_length())
    before, after = lengths.take(key_sizes), lengths.take(records.sizes)
    rows[:, 0] = digits.take(key_sizes) << (8 * (_LABEL - before)).view(np.uint64)
    overlapping: Words = np.ndarray((rows.size * 8 - 7,), "<u8", rows, 0, (1,))
    overlapping[key_starts + key_sizes] = digits.take(records.sizes)
    pairs = np.empty((len(rows), 2, 2), np.uint64)
    pairs[:, 0] = _views(rows, key_starts - before, before + key_sizes + after)
    pairs[:, 1] = _views(unpacked.buffer, records.values, records.sizes, buffer=1)
    spelled = _copied(pa.binary(), pairs, rows, unpacked.buffer).buffers()[2]
    # The bar before the very first record belongs to nothing.
    identity.chunk(memoryview(spelled)[0 if identity.started else 1 :])


@cache
def _labels(bits: int) -> tuple[Words, Ints]:
    """Word n holds the text `|n`, for all numbers of so many bits; and the lengths of these texts."""
    texts = [b"|%d" % n for n in range(1 << bits)]
    words = np.frombuffer(b"".join(text.ljust(8, b"\0") for text in texts), np.uint64)
    return words, np.array([len(text) for text in texts])


def _views(data: NDArray[Any], starts: Ints, sizes: Ints, buffer: int = 0) -> Words:
    """Arrow's binary views (16 bytes each) of these pieces of `data`, which is the views' n-th buffer. The prefix that
    a view may carry stays zero: it only serves comparisons, and these are only copied from."""
    views = np.empty((len(starts), 2), np.uint64)
    views[:, 0] = sizes
    views[:, 1] = (starts << 32) + buffer
    short = np.flatnonzero(sizes <= _INLINE)
    if len(short):
        _inline(views.view(np.uint8), data.view(np.uint8).ravel(), short, starts[short], sizes[short])
    return views


def _inline(views: NDArray[np.uint8], data: NDArray[np.uint8], short: Ints, starts: Ints, sizes: Ints) -> None:
    """Pieces of up to 12 bytes stand in the view itself, followed by zeros."""
    column = np.arange(_INLINE)
    inside = data[np.minimum(starts[:, None] + column, len(data) - 1)]
    views[short, 4:] = np.where(column < sizes[:, None], inside, 0)


def _copied(kind: pa.DataType, views: Words, *buffers: NDArray[Any]) -> pa.Array:
    """What the views show as a plain array; leaves the fast form if it should be text and isn't UTF-8."""
    parts = [None, pa.py_buffer(views), *map(pa.py_buffer, buffers)]
    try:
        return pa.Array.from_buffers(pa.binary_view(), views.size // 2, parts).cast(kind)
    except pa.ArrowInvalid as error:
        raise Irregular from error


class _Cursor:
    """Goes through the protobuf fields of all entries side by side, in the order of their numbers."""

    def __init__(self, words: Words, position: Ints, end: Ints) -> None:
        self.words = words
        self.position = position
        self.end = end

    def _follows(self, tag: int) -> tuple[Words, Bools | None]:
        """(7 bytes after the tag, where it stands): zeros where another field stands, None if it stands everywhere."""
        word = self.words[self.position]
        present = word.view(np.uint8)[::8] == tag
        present &= self.position < self.end
        word >>= 8
        if present.all():
            return word, None
        return np.where(present, word, 0), present

    def _advance(self, by: Ints, present: Bools | None) -> None:
        self.position = self.position + (by if present is None else by * present)

    def number(self, tag: int) -> tuple[Ints, Bools | None]:
        """A varint field: (values, where it stands)."""
        word, present = self._follows(tag)
        values, length = long_varints(word)
        require((length <= 7).all())
        self._advance(length + 1, present)
        return values, present

    def small(self, tag: int) -> Ints:
        """A varint field of one byte: values."""
        word, present = self._follows(tag)
        require(not (word & 0x80).any())
        self._advance(np.full(len(word), 2), present)
        return (word & 0x7F).view(np.int64)

    def piece(self, tag: int) -> tuple[Ints, Ints, Bools | None]:
        """A field of bytes: (starts, sizes, where it stands)."""
        word, present = self._follows(tag)
        sizes, length = short_varints(word)
        starts = self.position + (length + 1)
        self._advance(sizes + length + 1, present)
        return starts, sizes, present

    def finish(self) -> None:
        """Nothing may be left."""
        require(np.array_equal(self.position, self.end))


def _fields(unpacked: Unpacked, records: Records, metadata: bool) -> list[pa.Array]:
    cursor = _Cursor(unpacked.words, *_messages(unpacked, records))
    address = cursor.piece(0x0A)
    modified = _timestamps(cursor)
    size, _ = cursor.number(0x18)
    etag = cursor.piece(0x22)
    pairs = _pairs(cursor)
    kind = cursor.small(0x30)
    content_type = cursor.piece(0x3A)
    cursor.finish()
    require((kind <= 2).all())
    columns = [
        _texts(unpacked, address),
        _plain(pa.uint8(), kind.astype(np.uint8)),
        _plain(pa.int64(), size),
        _texts(unpacked, etag),
        modified,
    ]
    if metadata:
        columns += [_maps(unpacked, pairs, len(size)), _texts(unpacked, content_type)]
    return columns


def _messages(unpacked: Unpacked, records: Records) -> tuple[Ints, Ints]:
    """(starts, ends) of the entries' protobuf messages: after an identity of 32 bytes and their own length."""
    require((records.sizes >= _IDENTITY_SIZE + 2).all())
    require((unpacked.buffer[records.values] == _IDENTITY_SIZE << 1).all())
    at = records.values + (_IDENTITY_SIZE + 1)
    zigzag, length = short_varints(unpacked.words[at])
    starts = at + length
    ends = records.values + records.sizes
    require(np.array_equal(zigzag, ends - starts << 1))
    return starts, ends


def _timestamps(cursor: _Cursor) -> pa.Array:
    starts, sizes, present = cursor.piece(0x12)
    inner = _Cursor(cursor.words, starts, starts + sizes)
    seconds, _ = inner.number(0x08)
    nanos, _ = inner.number(0x10)
    inner.finish()
    require(((seconds <= MAX_SECONDS) & (nanos < 10**9)).all())
    return _plain(SCHEMA.field("last_modified").type, seconds * 1_000_000 + nanos // 1000, present)


def _plain(kind: pa.DataType, values: NDArray[Any], valid: Bools | None = None) -> pa.Array:
    """A column of numbers, sharing their memory; null where not valid."""
    # Not pa.array(): that imports pandas, where installed, at a fifth of a second.
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(values)])


def _texts(unpacked: Unpacked, piece: tuple[Ints, Ints, Bools | None]) -> pa.Array:
    starts, sizes, _ = piece
    return _copied(pa.string(), _views(unpacked.buffer, starts, sizes), unpacked.buffer)


# Entries with so many pairs of metadata are left to the reader that takes one entry at a time.
_MAX_PAIRS = 1 << 8


def _pairs(cursor: _Cursor) -> list[tuple[Ints, Ints, Ints]]:
    """The n-th pairs of metadata of those entries that have one: (entries, starts, sizes)."""
    pairs: list[tuple[Ints, Ints, Ints]] = []
    while True:
        starts, sizes, present = cursor.piece(0x2A)
        entries = np.flatnonzero(present) if present is not None else np.arange(len(starts))
        if not len(entries):
            return pairs
        require(len(pairs) < _MAX_PAIRS)
        pairs.append((entries, starts[entries], sizes[entries]))


def _maps(unpacked: Unpacked, pairs: list[tuple[Ints, Ints, Ints]], count: int) -> pa.Array:
    none = np.zeros(0, np.int64)
    entries, starts, sizes = (np.concatenate(column) for column in zip((none, none, none), *pairs, strict=True))
    order = np.argsort(entries, kind="stable")
    cursor = _Cursor(unpacked.words, starts[order], (starts + sizes)[order])
    keys, values = (_texts(unpacked, cursor.piece(tag)) for tag in (0x0A, 0x12))
    cursor.finish()
    # Of a key that stands twice the last one counts; that is for the other reader.
    named = pa.table({"entry": _plain(pa.int64(), entries[order]), "key": keys}).group_by(["entry", "key"])
    require(named.aggregate([]).num_rows == len(keys))
    offsets = np.searchsorted(entries[order], np.arange(count + 1)).astype(np.int32)
    return pa.MapArray.from_arrays(_plain(pa.int32(), offsets), keys, values).cast(METADATA_TYPE)


def _joined(schema: pa.Schema, chunks: list[list[pa.Array]]) -> pa.RecordBatch:
    if not chunks:
        return pa.RecordBatch.from_pylist([], schema)
    columns = chunks[0] if len(chunks) == 1 else [pa.concat_arrays(list(parts)) for parts in zip(*chunks, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
