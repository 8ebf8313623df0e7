"""Damaged, truncated, foreign and hostile files: one error that says where, never a wrong entry."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graveler import ranges
from graveler.entries import Entry, Timestamp, encode_entry
from graveler.errors import FormatError
from graveler.metarange import read_metarange
from graveler.ranges import RangeWriter, read_range, read_range_columns, write_range
from graveler.sstable.blocks import BlockBuilder, masked_crc, pack
from graveler.sstable.reader import FOOTER_SIZE, SET_TRAILER, open_table
from graveler.sstable.writer import TableWriter
from graveler.values import pack_value
from graveler.wire import put_uvarint
from tests.graveler.recorded import RECORDED, bytes_of

RANGE = "ec3b7fb090ded3faa0d88ff2fbcc649f87f40c9aceecd76f6385e055d3e8c903"
BIG_RANGE = "fc51a543003362e7de84e4e7635969e79fd4e06b010f9d91e20890958d7cb641"
METARANGE = "f697171fc464bc19f9fdd3772ea1a149a2c01d5450670ba397d191b6ae87bc9d"
Read = Callable[[bytes], object]
READERS: list[Read] = [
    lambda data: list(read_range(data, expected_id=RANGE)),
    lambda data: read_range_columns(data, expected_id=RANGE, metadata=True),
]


def flipped(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ rng.randrange(1, 256)]) + data[at + 1 :]


@pytest.mark.parametrize("read", READERS, ids=["entries", "columns"])
def test_each_of_a_thousand_flipped_bytes_is_found(read: Read) -> None:
    data, rng = bytes_of("lake", RANGE), random.Random(1)
    for _ in range(1000):
        with pytest.raises(FormatError):
            read(flipped(data, rng))


def test_every_single_byte_of_a_file_counts_even_without_its_name() -> None:
    data = bytes_of("lake", RANGE)
    for at in range(len(data)):
        with pytest.raises(FormatError):
            read_range(data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1 :])


def test_flipped_bytes_of_a_metarange_are_found() -> None:
    data, rng = bytes_of("big", METARANGE), random.Random(2)
    for _ in range(500):
        with pytest.raises(FormatError):
            read_metarange(flipped(data, rng), expected_id=METARANGE)


def test_flipped_bytes_of_a_file_with_two_level_index_are_found() -> None:
    data, rng = bytes_of("big", BIG_RANGE), random.Random(3)
    for _ in range(25):
        with pytest.raises(FormatError):
            read_range_columns(flipped(data, rng), expected_id=BIG_RANGE)


@pytest.mark.parametrize("read", READERS, ids=["entries", "columns"])
def test_a_truncated_file_is_refused_at_every_length(read: Read) -> None:
    data = bytes_of("lake", RANGE)
    for length in range(len(data)):
        with pytest.raises(FormatError):
            read(data[:length])


@pytest.mark.parametrize("read", READERS, ids=["entries", "columns"])
def test_bytes_in_front_between_or_behind_are_refused(read: Read) -> None:
    data = bytes_of("lake", RANGE)
    for at in (0, 10, len(data) - FOOTER_SIZE, len(data)):
        with pytest.raises(FormatError):
            read(data[:at] + b"\0" + data[at:])


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_noise_is_no_table_even_with_a_right_footer(noise: bytes) -> None:
    footer = bytes_of("lake", RANGE)[-FOOTER_SIZE:]
    for data in (noise, noise + footer):
        with pytest.raises(FormatError):
            read_range_columns(data)


def test_the_error_names_file_offset_and_what_was_expected() -> None:
    data = bytes_of("lake", RANGE)
    with pytest.raises(FormatError) as caught:
        read_range(data[:100] + b"\xff" + data[101:], file="here")
    assert str(caught.value) == "here: at byte 0: expected a block that agrees with its checksum"
    assert (caught.value.file, caught.value.offset) == ("here", 0)
    with pytest.raises(FormatError, match=f"at byte {len(data) - 18}: expected the magic number"):
        read_range(data[:-10])


def test_a_foreign_file_is_refused() -> None:
    with pytest.raises(FormatError, match="magic number"):
        read_range((RECORDED / "lake" / "repository.json").read_bytes())


def record_table(records: list[tuple[bytes, bytes]], count: int | None = None) -> bytes:
    """A sound table with any values in it."""
    writer = TableWriter()
    for key, value in records:
        writer.add(key, value)
    return writer.finish({"type": b"ranges", "count": b"%d" % (len(records) if count is None else count)})


VALUES = {
    "empty": b"",
    "identity cut off": b"\x40abc",
    "negative length": b"\x01",
    "endless varint": b"\xff" * 12,
    "data cut off": b"\x00\x20abc",
    "message cut off": b"\x00\x04\x0a\x09",
    "text that is none": b"\x00\x06\x0a\x01\xff",
    "number for text": b"\x00\x04\x08\x01",
    "unknown wire type": b"\x00\x04\x0b\x01",
    "unknown address type": b"\x00\x04\x30\x07",
    "time beyond years": b"\x00\x16\x12\x09\x08\xff\xff\xff\xff\xff\xff\xff\x7f",
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("read", [read_range, read_range_columns])
def test_records_that_make_no_sense_are_refused_though_checksums_are_right(read: Read, value: bytes) -> None:
    with pytest.raises(FormatError):
        read(record_table([(b"key", value)]))


@pytest.mark.parametrize("read", [read_range, read_range_columns])
def test_a_count_that_is_not_that_of_the_records_is_refused(read: Read) -> None:
    with pytest.raises(FormatError, match="property count"):
        read(record_table([(b"key", b"\x00\x00")], count=2))


def assembled(block: bytes, *, compressed: bytes | None = None) -> bytes:
    """A table of one block, as anyone can make it who knows how checksums go."""
    stored = pack(block, compress=False)
    if compressed is not None:
        typed = compressed + b"\x01"
        stored = typed + struct.pack("<I", masked_crc(typed))
    writer = TableWriter()
    writer._out += stored
    writer._index.add(b"z" + SET_TRAILER, put_uvarint(0) + put_uvarint(len(stored) - 5))
    writer._data_blocks = 1
    return writer.finish({"type": b"ranges", "count": b"1"})


def unordered_block() -> bytes:
    block = BlockBuilder(16)
    for key in (b"b", b"a"):
        block.add(key + SET_TRAILER, b"\x00\x00")
    return block.finish()


def blown_up_block() -> bytes:
    """Some kilobytes whose keys would take gigabytes: each shares all of a long key but its end."""
    first = b"\0" + put_uvarint(60_016) + b"\0" + b"x" * 60_000 + b"%08d" % 0 + SET_TRAILER
    more = [put_uvarint(60_000) + b"\x10\0" + b"%08d" % n + SET_TRAILER for n in range(1, 60_000)]
    return first + b"".join(more) + bytes(4) + b"\1\0\0\0"


def deleted_block() -> bytes:
    block = BlockBuilder(16)
    block.add(b"a" + bytes(8), b"\x00\x00")
    return block.finish()


HOSTILE: dict[str, Callable[[], bytes]] = {
    "keys out of order": lambda: assembled(unordered_block()),
    "a deletion": lambda: assembled(deleted_block()),
    "keys that blow up": lambda: assembled(b"", compressed=pack(blown_up_block(), compress=True)[:-5]),
    "a Snappy length of gigabytes": lambda: assembled(b"", compressed=put_uvarint(1 << 31) + b"\x00a"),
    "Snappy that is none": lambda: assembled(b"", compressed=b"\x20\xff\xff\xff"),
    "restart points of gigabytes": lambda: assembled(b"\0\0\0\0\xff\xff\xff\x7f"),
    "no restart point": lambda: assembled(bytes(12)),
    "a block without a body": lambda: assembled(b""),
    "a record longer than its block": lambda: assembled(b"\x00\xff\x7f\xff\x7fabc" + bytes(4) + b"\1\0\0\0"),
    "a first key that shares": lambda: assembled(b"\x05\x09\x00a" + SET_TRAILER + bytes(4) + b"\1\0\0\0"),
}


@pytest.mark.parametrize("read", [read_range, read_range_columns])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_soon(name: str, read: Read) -> None:
    data = HOSTILE[name]()
    started = time.monotonic()
    with pytest.raises(FormatError):
        read(data)
    assert time.monotonic() - started < 20


def test_a_handle_that_points_anywhere_is_refused() -> None:
    data = bytes_of("lake", RANGE)
    for offset in (0, 1 << 20, 1 << 40, (1 << 64) - 1):
        handles = put_uvarint(offset) + put_uvarint(offset)
        for pair in (handles * 2, data[-FOOTER_SIZE + 1 :][:4] + handles, handles + data[-FOOTER_SIZE + 1 :][:4]):
            with pytest.raises(FormatError):
                read_range(data[:-FOOTER_SIZE] + b"\1" + pair.ljust(40, b"\0")[:40] + data[-12:])


def test_unknown_fields_and_a_tail_after_the_value_are_skipped_as_lakefs_does() -> None:
    writer = RangeWriter()
    plain = write_range([Entry(b"k", "a", 1, "e")])
    (entry,) = read_range(plain.data)
    writer.add_record(b"k", pack_value(entry.identity, encode_entry(entry) + b"\x7a\x01z") + b"tail")
    data = writer.finish().data
    assert list(read_range(data)) == [entry]
    assert read_range_columns(data).equals(read_range_columns(plain.data))


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The file with a few bytes of one block's plain content changed, and all checksums right again."""
    table, writer = open_table(data), TableWriter()
    blocks = [bytearray(block) for _, block in table.blocks()]
    block = rng.choice(blocks)
    for _ in range(rng.choice((1, 2, 5))):
        block[rng.randrange(len(block))] = rng.choice((rng.randrange(256), 0, 0x7F, 0x80, 0xFF, 0x0A, 0x2A))
    for one in blocks:
        handle = writer._write(bytes(one))
        writer._index.add(b"%08d" % handle.offset + SET_TRAILER, handle.encode())
    return writer.finish(table.user_properties())


def outcome(read: Callable[[bytes], pa.RecordBatch], data: bytes) -> list[object] | str:
    try:
        return list(read(data).to_pylist())
    except FormatError:
        return "refused"


def entry_by_entry(data: bytes) -> pa.RecordBatch:
    return ranges._columns_of(read_range(data), metadata=True)


def all_columns(data: bytes) -> pa.RecordBatch:
    return read_range_columns(data, metadata=True)


def test_both_readers_agree_on_files_with_right_checksums_and_wrong_content() -> None:
    rng = random.Random(4)
    odd = [
        Entry(b"t/%05d" % n, f"d/{n}", n * 977, "e" * 32, Timestamp(n), {"k": "v"} if n % 3 else {}, "x" * (n % 2))
        for n in range(200)
    ]
    for data in [bytes_of("lake", RANGE)] * 200 + [write_range(odd).data] * 200:
        changed = mutated(data, rng)
        assert outcome(entry_by_entry, changed) == outcome(all_columns, changed)
