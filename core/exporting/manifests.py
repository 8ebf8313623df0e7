"""The list of all files of a commit at a status path: when it is written, and what it holds. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from enum import StrEnum

LINES_AT_ONCE = 10_000
DAY = timedelta(days=1)


class Mode(StrEnum):
    """When it is written; the values are those of the API."""

    ALWAYS = "always"
    DAILY = "daily"
    NEVER = "never"


def is_due(mode: str, last: datetime | None, now: datetime) -> bool:
    """Does a run that succeeds now leave a manifest? `last`: when the last one was written at its status path."""
    if mode == Mode.NEVER:
        return False
    return mode == Mode.ALWAYS or last is None or now - last >= DAY


def lines(files: Iterable[tuple[bytes, str, int]]) -> Iterator[bytes]:
    """Its text in pieces of some thousand lines: a JSON object a line, of path, ETag and size in bytes."""
    some: list[str] = []
    for path, etag, size in files:
        name = path.decode("utf-8", "surrogateescape")
        some.append(json.dumps({"path": name, "etag": etag, "size": size}) + "\n")
        if len(some) == LINES_AT_ONCE:
            yield "".join(some).encode()
            some = []
    yield "".join(some).encode()


def in_parts(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The same bytes in parts of this size; the last one may be shorter. At least one, which may be empty."""
    some = bytearray()
    for piece in pieces:
        some += piece
        while len(some) > size:
            yield bytes(some[:size])
            del some[:size]
    yield bytes(some)
