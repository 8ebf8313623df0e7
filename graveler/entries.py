"""An object as a commit holds it: `Entry`, and its protobuf form in a range.

Fields as in lakeFS's `catalog.proto`: 1 address, 2 last_modified, 3 size, 4 e_tag, 5 metadata, 6 address_type,
7 content_type. Go writes a map of several keys in no fixed order, so a read entry keeps the order it came in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import NamedTuple

from graveler.identity import entry_identity
from graveler.values import pack_value, unpack_value
from graveler.wire import VARINT, Malformed, fields, put_field, put_int_field, signed64

# The years 1 to 9999, as protobuf's Timestamp allows.
MIN_SECONDS, MAX_SECONDS = -62_135_596_800, 253_402_300_799
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class AddressType(IntEnum):
    """How an address is meant: under the storage namespace, or a full URI elsewhere."""

    BY_PREFIX = 0
    RELATIVE = 1
    FULL = 2


class Timestamp(NamedTuple):
    """Unix seconds and nanoseconds, as exact as the format keeps them."""

    seconds: int
    nanos: int = 0

    @classmethod
    def of(cls, when: datetime) -> Timestamp:
        """From an aware datetime."""
        delta = when - _EPOCH
        return cls(delta.days * 86400 + delta.seconds, delta.microseconds * 1000)

    def to_datetime(self) -> datetime:
        """In UTC, cut to microseconds."""
        return _EPOCH + timedelta(seconds=self.seconds, microseconds=self.nanos // 1000)


@dataclass(frozen=True, slots=True)
class Entry:
    """One object at one path. `size` in bytes; `etag` without quotes."""

    path: bytes
    address: str
    size: int
    etag: str
    last_modified: Timestamp | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    content_type: str = ""
    address_type: AddressType = AddressType.RELATIVE

    @property
    def identity(self) -> bytes:
        """The identity that goes with this entry's content."""
        return entry_identity(size=self.size, etag=self.etag, metadata=self.metadata, content_type=self.content_type)

    @property
    def relative(self) -> bool:
        """Does the object lie under the storage namespace?"""
        if self.address_type is AddressType.BY_PREFIX:
            return "://" not in self.address
        return self.address_type is AddressType.RELATIVE


def encode_entry(entry: Entry) -> bytes:
    """The protobuf form, without the path."""
    parts = [_text(1, entry.address)]
    if entry.last_modified is not None:
        seconds, nanos = entry.last_modified
        parts.append(put_field(2, put_int_field(1, seconds) + put_int_field(2, nanos)))
    parts += (put_int_field(3, entry.size), _text(4, entry.etag))
    # A map's pair spells out both sides, even empty ones.
    parts += (
        put_field(5, put_field(1, key.encode()) + put_field(2, value.encode())) for key, value in entry.metadata.items()
    )
    parts += (put_int_field(6, entry.address_type), _text(7, entry.content_type))
    return b"".join(parts)


def encode_record(entry: Entry) -> bytes:
    """The value of the entry's record in a range."""
    return pack_value(entry.identity, encode_entry(entry))


def decode_record(path: bytes, value: bytes) -> tuple[bytes, Entry]:
    """(recorded identity, entry). The identity is not compared here. Raises Malformed."""
    identity, data = unpack_value(value)
    return identity, decode_entry(path, data)


def decode_entry(path: bytes, data: bytes) -> Entry:
    """An entry from its protobuf form; unknown fields are skipped. Raises Malformed."""
    numbers = {3: 0, 6: 0}
    texts = {1: "", 4: "", 7: ""}
    metadata: dict[str, str] = {}
    modified: Timestamp | None = None
    for number, kind, value in fields(data):
        if number in texts:
            texts[number] = _utf8(number, kind, value)
        elif number in numbers:
            numbers[number] = _number(number, kind, value)
        elif number == 2:
            modified = _merged(modified or Timestamp(0), _bytes(number, kind, value))
        elif number == 5:
            key, text = _pair(_bytes(number, kind, value))
            metadata[key] = text
    return Entry(path, texts[1], numbers[3], texts[4], modified, metadata, texts[7], _address_type(numbers[6]))


def _text(number: int, value: str) -> bytes:
    return put_field(number, value.encode()) if value else b""


def _bytes(number: int, kind: int, value: int | bytes) -> bytes:
    if kind == 2 and isinstance(value, bytes):
        return value
    raise Malformed(f"field {number} as bytes")


def _utf8(number: int, kind: int, value: int | bytes) -> str:
    try:
        return _bytes(number, kind, value).decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"field {number} in UTF-8") from error


def _number(number: int, kind: int, value: int | bytes) -> int:
    if kind == VARINT and isinstance(value, int):
        return signed64(value)
    raise Malformed(f"field {number} as a number")


def _merged(before: Timestamp, data: bytes) -> Timestamp:
    parts = [*before]
    for number, kind, value in fields(data):
        if number in (1, 2):
            parts[number - 1] = _number(number, kind, value)
    if not (MIN_SECONDS <= parts[0] <= MAX_SECONDS and 0 <= parts[1] < 10**9):
        raise Malformed("a time of the years 1 to 9999, and less than a second of nanoseconds")
    return Timestamp(*parts)


def _pair(data: bytes) -> tuple[str, str]:
    texts = {1: "", 2: ""}
    for number, kind, value in fields(data):
        if number in texts:
            texts[number] = _utf8(number, kind, value)
    return texts[1], texts[2]


def _address_type(value: int) -> AddressType:
    try:
        return AddressType(value)
    except ValueError as error:
        raise Malformed(f"address type 0, 1 or 2, not {value}") from error
