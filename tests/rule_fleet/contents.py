"""Contents that say what they are: a line with the number of the write, its key and the hash of what follows."""

from __future__ import annotations

import hashlib
import json
import random

MIB = 1 << 20
SIZES = (("small", 200, 50), ("page", 5_000, 30), ("picture", 300_000, 14), ("large", 9 * MIB, 3), ("parts", 0, 3))
"""Kinds of objects: name, bytes, and how many of a hundred are of it."""
PART = 5 * MIB


class Torn(Exception):
    """What was read is no whole content that somebody has written."""


def made(number: int, key: str, size: int) -> bytes:
    """The content of a write: so many bytes at least."""
    padding = random.Random(number).randbytes(size)
    told = {"id": number, "key": key, "sha": hashlib.sha256(padding).hexdigest()}
    return json.dumps(told).encode() + b"\n" + padding


def kind_of(chance: random.Random) -> tuple[str, int]:
    """What somebody writes: the kind, and how many bytes."""
    [(name, size, _)] = chance.choices(SIZES, [share for _, _, share in SIZES])
    if name == "parts":
        return name, PART * chance.choice((1, 1, 2)) + chance.randrange(1, 12_345)
    return name, max(1, round(size * chance.uniform(0.5, 1.0)))


def read(data: bytes, key: str) -> int:
    """The number of the write whose content this is. Raises Torn."""
    first, _, padding = data.partition(b"\n")
    try:
        told = json.loads(first)
        number, named, sha = int(told["id"]), str(told["key"]), str(told["sha"])
    except (ValueError, KeyError, TypeError) as error:
        raise Torn(f"{key} has no content of anybody: {first[:80]!r}") from error
    if named != key:
        raise Torn(f"{key} has what was written to {named}")
    if hashlib.sha256(padding).hexdigest() != sha:
        raise Torn(f"{key} has a torn or mixed content of write {number}, {len(data)} bytes")
    return number
