"""Many objects in one message: a JSON line per object, followed by its bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as one store gives it to another; with the operation `delete` its absence."""

    bucket: str
    key: str
    body: bytes = b""
    etag: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    op: str = "put"
    storage_class: str = "STANDARD"


def pack(objects: Iterable[Stored]) -> Iterator[bytes]:
    """The message, piece by piece."""
    for item in objects:
        head = [len(item.body), item.bucket, item.key, item.etag, dict(item.metadata), item.op, item.storage_class]
        yield json.dumps(head).encode() + b"\n" + item.body


def unpack(stream: BinaryIO) -> Iterator[Stored]:
    """The objects of a message. Raises ValueError when it is cut short."""
    while line := stream.readline():
        length, bucket, key, *rest = json.loads(line)
        body = stream.read(length)
        if len(body) != length:
            raise ValueError(f"{key}: {len(body)} of {length} bytes arrived")
        yield Stored(bucket, key, body, *rest)
