"""What stands as the value of each record: an identity and its data, each after its zigzag varint length."""

from __future__ import annotations

from graveler.wire import Malformed, get_varint, put_varint


def pack_value(identity: bytes, data: bytes) -> bytes:
    """The value of a record."""
    return put_varint(len(identity)) + identity + put_varint(len(data)) + data


def unpack_value(value: bytes) -> tuple[bytes, bytes]:
    """(identity, data). As in lakeFS, bytes after the data mean nothing. Raises Malformed."""
    identity, pos = _piece(value, 0)
    data, _ = _piece(value, pos)
    return identity, data


def _piece(value: bytes, pos: int) -> tuple[bytes, int]:
    size, pos = get_varint(value, pos)
    if not 0 <= size <= len(value) - pos:
        raise Malformed(f"a piece of a value of at most {len(value) - pos} bytes, not {size}")
    return value[pos : pos + size], pos + size
