"""Identities: the SHA-256 chain from an object's size and ETag up to a commit id.

The marshalling is that of lakeFS's `pkg/ident`: each value is preceded by a type byte, numbers are 8 bytes
big-endian, maps go in the order of their keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

# Properties that describe a file but take no part in its id.
STATISTICS = frozenset({"min_key", "max_key", "count", "estimated_size_bytes"})


def _int(value: int) -> bytes:
    return b"\x02\x08" + (value & (1 << 64) - 1).to_bytes(8, "big")


def _text(value: str) -> bytes:
    data = value.encode()
    return b"\x01" + _int(len(data)) + data


def _texts(values: Sequence[str]) -> bytes:
    return b"\x03" + _int(len(values)) + b"".join(map(_text, values))


def _map(values: Mapping[str, str]) -> bytes:
    # Go sorts by the bytes, which for UTF-8 is the order of code points: that of Python's sorted().
    pairs = (_text(key) + _text(values[key]) for key in sorted(values))
    return b"\x04" + _int(len(values)) + b"".join(pairs)


def _embedded(digest: bytes) -> bytes:
    return b"\x05\x00" + _int(len(digest)) + digest


def entry_identity(*, size: int, etag: str, metadata: Mapping[str, str], content_type: str) -> bytes:
    """32 bytes that identify an object's content, wherever it lies."""
    parts = _int(size) + _text(etag) + _map(metadata)
    if content_type:
        parts += _text(content_type)
    return hashlib.sha256(parts).digest()


def commit_id(
    *,
    committer: str,
    message: str,
    metarange_id: str,
    creation_date: int,
    metadata: Mapping[str, str],
    parents: Sequence[str],
) -> str:
    """Hex id of a commit record. `creation_date` in Unix seconds; a repository's first commit has metarange ""."""
    digest = hashlib.sha256()
    for text in ("commit:v1", committer, message, metarange_id):
        digest.update(_text(text))
    digest.update(_int(creation_date))
    digest.update(_map(metadata))
    digest.update(_embedded(hashlib.sha256(_texts(parents)).digest()))
    return digest.hexdigest()


class FileIdentity:
    """The id of a range or metarange file, fed record by record."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.started = False

    def record(self, key: bytes, value: bytes) -> None:
        """Takes the next record, in the order of the file."""
        self._digest.update(b"%d%b|%d%b|" % (len(key), key, len(value), value))

    def chunk(self, records: bytes | memoryview) -> None:
        """Takes many records, already spelled out as `record` would, or a stretch of such text."""
        self._digest.update(records)
        self.started = True

    def hex(self, properties: Mapping[str, str]) -> str:
        """The id, once all records are in, with the properties that it covers. Ends the use of this object."""
        self._digest.update(_map(properties))
        return self._digest.hexdigest()


def file_id(records: Iterable[tuple[bytes, bytes]], properties: Mapping[str, str]) -> str:
    """Hex id of a file with these records (key, value), and the user properties that it covers."""
    identity = FileIdentity()
    for key, value in records:
        identity.record(key, value)
    return identity.hex(properties)
