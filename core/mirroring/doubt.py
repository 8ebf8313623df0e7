"""What may name an object that was just found missing or wrong? Pure.

A range's row knows the addresses that were looked for when it was checked; what a base range named alike was left out.
So a range names an address only if it looked for it itself, or builds on a range that names it. What this gives is
never too little, for checksums may only collide: each of them is read to find out.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

KEY_BYTES = 256
"""So much of a range's first and last path is kept."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """An object that was found missing or wrong: the path of its entry, and its address's checksum."""

    path: bytes
    crc: int


@dataclass(frozen=True, slots=True)
class KnownRange:
    """A range that was checked: the beginnings of its first and last path, what it looked for and what it builds on."""

    range_id: str
    min_key: bytes
    max_key: bytes
    looked: bytes
    bases: Sequence[str]

    def covers(self, path: bytes) -> bool:
        """Whether an entry of that path may be in it."""
        return self.min_key <= path[:KEY_BYTES] <= self.max_key


def address_crc(address: str) -> int:
    """The checksum by which addresses are compared, as an entry has them."""
    return crc32(address.encode("utf-8", "surrogatepass"))


def pack(checksums: Iterable[int]) -> bytes:
    """Checksums as a row keeps them: ascending, each once, little-endian uint32."""
    packed = array("I", sorted(set(checksums)))
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def unpack(looked: bytes) -> Sequence[int]:
    """The checksums that a row keeps, ascending."""
    checksums = array("I")
    checksums.frombytes(bytes(looked))
    if sys.byteorder == "big":
        checksums.byteswap()
    return checksums


def with_memory(now: KnownRange, before: KnownRange) -> KnownRange:
    """A range that was checked once more: others build on what earlier checks of it had looked for, so what is kept of
    it never gets less. Of a file that is missing or damaged nobody knows what it holds: its keys stay."""
    keys = before if before.max_key and not now.max_key else now
    looked = pack([*unpack(now.looked), *unpack(before.looked)])
    bases = tuple(dict.fromkeys([*now.bases, *before.bases]))
    return KnownRange(now.range_id, keys.min_key, keys.max_key, looked, bases)


def looked_for(known: KnownRange, wanted: Collection[int]) -> list[int]:
    """Which of some checksums a range has looked for."""
    own = unpack(known.looked)
    if len(own) <= len(wanted):
        return [crc for crc in own if crc in wanted]
    return [crc for crc in wanted if (at := bisect_left(own, crc)) < len(own) and own[at] == crc]


def that_may_name(suspects: Iterable[Suspect], ranges: Sequence[KnownRange]) -> set[str]:
    """Ids of the ranges that may name one of these objects, itself or by what they build on."""
    by_crc: dict[int, set[bytes]] = defaultdict(set)
    for suspect in suspects:
        by_crc[suspect.crc].add(suspect.path)
    seeds = {known.range_id: hits for known in ranges if (hits := looked_for(known, by_crc.keys()))}
    if not seeds:
        return set()
    built_on = _built_on(ranges)
    reached: set[str] = set()
    for range_id, checksums in seeds.items():
        reached |= _upwards(range_id, {path for crc in checksums for path in by_crc[crc]}, built_on)
    return reached


def _built_on(ranges: Sequence[KnownRange]) -> Mapping[str, list[KnownRange]]:
    built_on: dict[str, list[KnownRange]] = defaultdict(list)
    for known in ranges:
        for base in known.bases:
            built_on[base].append(known)
    return built_on


def _upwards(seed: str, paths: set[bytes], built_on: Mapping[str, list[KnownRange]]) -> set[str]:
    """The range, and all that is built on it and may hold an entry of these paths."""
    reached, ahead = {seed}, [seed]
    while ahead:
        for known in built_on.get(ahead.pop(), ()):
            if known.range_id not in reached and any(known.covers(path) for path in paths):
                reached.add(known.range_id)
                ahead.append(known.range_id)
    return reached
