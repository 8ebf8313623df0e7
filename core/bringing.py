"""Mirrors that bring their objects themselves: who replicates, what can be brought, and in which parts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from core.errors import LakeMirrorError, NotFound, RemoteFailure
from core.mirroring.object_check import Reason, Verdict, plain_etag
from core.types import ObjectInfo

MIB = 1 << 20


class ObjectReplication(StrEnum):
    """Who brings a mirror's objects: the stores, by a rule of their own, or LakeMirror."""

    NATIVE = "native"
    MANAGED = "managed"


class Side(StrEnum):
    """Of which store it is told."""

    SOURCE = "source"
    DESTINATION = "destination"


BRINGABLE = frozenset({Reason.MISSING, Reason.SIZE, Reason.ETAG, Reason.CONTENT})
"""What is over once the source's bytes are at the destination: nobody else may write below a mirror's namespace."""

BRINGABLE_METADATA = frozenset(
    {Reason.RANGE_MISSING, Reason.RANGE_DAMAGED, Reason.METARANGE_MISSING, Reason.METARANGE_DAMAGED}
)
"""The same of ranges and metaranges."""

REPLACEABLE = frozenset({Reason.SIZE, Reason.ETAG, Reason.CONTENT, Reason.RANGE_DAMAGED, Reason.METARANGE_DAMAGED})
"""Of both, what is there and has other bytes: to mend it is to write over something."""

LEAST_BYTES_PER_SECOND = 1_000_000
MOST_BYTES_PER_SECOND = 10**12
MOST_OBJECTS_PER_SECOND = 10**6
MOST_WORKERS = 256
DEFAULT_WORKERS = 16
SLICE_SECONDS = 30.0
"""So long one job brings objects; what was not begun is planned anew, with what is more urgent before it."""
SMALL_SLICE_SECONDS = 8.0
"""The same of a worker by itself, which learns of other limits only in between."""
SMALL_BYTES = 1 << 30
"""More than that is Spark's."""

PARTS_TRIED = tuple(size * MIB for size in (5, 6, 8, 10, 12, 15, 16, 20, 24, 25, 30, 32, 40, 48, 50, 64, 80, 96, 100))
"""How large the parts are that clients upload by default or by common advice, besides powers of two."""
LARGEST_PART = 128 * MIB
"""A part is held in memory while it is copied: larger ones are cut anew."""


class Unbrought(Exception):
    """A store did not do its part: `side` says which one, `error` what it answered. NotFound at the source: the object
    is gone there; at the destination: the bucket is."""

    def __init__(self, side: Side, error: LakeMirrorError) -> None:
        super().__init__(error.message)
        self.side, self.error = side, error

    @property
    def gone(self) -> bool:
        """Whether the source says that it has no such object."""
        return self.side is Side.SOURCE and isinstance(self.error, NotFound)


class Overwritten(RemoteFailure):
    """The source has another object there than the one that was to be read."""


def is_bringable(verdict: Verdict) -> bool:
    """Whether the source's bytes would mend it."""
    return verdict is not None and verdict[0] in BRINGABLE


def is_as_entry(info: ObjectInfo, *, size: int, etag: str) -> bool:
    """Whether an object has the size and, where the entry has one, the ETag that a commit's entry says."""
    return info.size == size and (not etag or plain_etag(info.etag) == plain_etag(etag))


def part_sizes(size: int, count: int) -> Sequence[int]:
    """The sizes of equal parts, the last one smaller, that give an object of `size` bytes just `count` parts; likeliest
    first. Empty where none of those that clients use does."""
    powers = {MIB << power for power in range(3, 8)}
    tried = sorted({*PARTS_TRIED, *powers})
    return [part for part in tried if part <= LARGEST_PART and -(-size // part) == count]


def parts_of(etag: str) -> int:
    """In how many parts an object was uploaded, by its ETag; 0: in one piece, or it does not say."""
    _, dash, number = etag.rpartition("-")
    return int(number) if dash and number.isdigit() else 0
