"""Varints and protobuf fields: the few bits of wire format that lakeFS's records use.

Everything here raises `Malformed`, which knows no file; the table reader turns it into a `FormatError`.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MASK64 = (1 << 64) - 1


class Malformed(Exception):
    """Bytes that don't follow the encoding; the text says what was expected."""


def put_uvarint(value: int) -> bytes:
    """Unsigned LEB128."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def put_varint(value: int) -> bytes:
    """Zigzag varint of a 64-bit signed number (Go's `binary.PutVarint`)."""
    return put_uvarint((value << 1 ^ value >> 63) & _MASK64)


def get_uvarint(data: bytes, pos: int) -> tuple[int, int]:
    """Returns (value, position after it)."""
    result = shift = 0
    while True:
        if pos >= len(data):
            raise Malformed("a whole varint")
        byte = data[pos]
        pos += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    if result > _MASK64 or shift > 63:
        raise Malformed("a varint of at most 64 bits")
    return result, pos


def get_varint(data: bytes, pos: int) -> tuple[int, int]:
    """Zigzag varint: (value, position after it)."""
    raw, pos = get_uvarint(data, pos)
    return raw >> 1 ^ -(raw & 1), pos


def signed64(raw: int) -> int:
    """A protobuf int64 from its unsigned varint."""
    return raw - (1 << 64) if raw >> 63 else raw


def put_field(number: int, payload: bytes) -> bytes:
    """A length-delimited protobuf field."""
    return put_uvarint(number << 3 | BYTES) + put_uvarint(len(payload)) + payload


def put_int_field(number: int, value: int) -> bytes:
    """A varint field, left out when zero as proto3 does."""
    return put_uvarint(number << 3 | VARINT) + put_uvarint(value & _MASK64) if value else b""


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The fields of a protobuf message in order: (number, wire type, number or bytes)."""
    pos, end = 0, len(data)
    while pos < end:
        tag, pos = get_uvarint(data, pos)
        wire_type = tag & 7
        if wire_type == VARINT:
            value, pos = get_uvarint(data, pos)
            yield tag >> 3, VARINT, value
            continue
        size, pos = _payload_size(data, pos, wire_type)
        if size > end - pos:
            raise Malformed(f"{size} bytes of field {tag >> 3}, not {end - pos}")
        yield tag >> 3, wire_type, data[pos : pos + size]
        pos += size


def _payload_size(data: bytes, pos: int, wire_type: int) -> tuple[int, int]:
    if wire_type == BYTES:
        return get_uvarint(data, pos)
    if wire_type in (FIXED64, FIXED32):
        return 8 if wire_type == FIXED64 else 4, pos
    raise Malformed(f"a protobuf wire type, not {wire_type}")
