"""How the work of an export is cut: the key line at the target's ranges, a unit for each piece that may differ.

Metaranges in, units out, nothing is read. `target` is the commit that the destination is brought to; `others` are what
it may hold now: the commit of the last success (no ranges if there was none) and those of attempts since. Planned is
every key on which they do not all agree; no unit leaves one out, and what all of them share is in no unit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from graveler.metarange import RangeRef

Interval = tuple[int, int]
"""Rows from the first number to before the second one."""

ROWS_PER_PART = 5_000
BYTES_PER_PART = 32 << 30


@dataclass(frozen=True, slots=True)
class Unit:
    """The keys from `low` to before `high` (None: to the end), and the ranges that have to be read for them.

    `target` is the target's range there; "" where it has none, or where it is shared by all and the others have more.
    `others` has the ranges of each other commit, in order of key; they may reach beyond the unit. `entries`: how many
    entries are read at most.
    """

    low: bytes
    high: bytes | None
    target: str
    others: tuple[tuple[str, ...], ...]
    entries: int = field(default=0, compare=False)

    def holds(self, key: bytes) -> bool:
        """Is it this unit's to decide about the key?"""
        return self.low <= key and (self.high is None or key < self.high)


def plan_units(target: Sequence[RangeRef], others: Sequence[Sequence[RangeRef]]) -> Iterator[Unit]:
    """The units in order of key. ValueError without any other commit: that one is to be empty for a first export."""
    if not others:
        raise ValueError("a first export has one other commit, without ranges")
    walks = [_Walk(refs) for refs in others]
    for low, high, ref in _pieces(target):
        unit = _unit(low, high, ref, [walk.between(low, high) for walk in walks])
        if unit is not None:
            yield unit


def _pieces(target: Sequence[RangeRef]) -> Iterator[tuple[bytes, bytes | None, RangeRef | None]]:
    """The whole key line, cut where ranges begin."""
    if not target:
        yield b"", None, None
    for number, ref in enumerate(target):
        last = number + 1 == len(target)
        yield (ref.min_key if number else b""), (None if last else target[number + 1].min_key), ref


class _Walk:
    """A commit's ranges, asked for along the key line."""

    def __init__(self, refs: Sequence[RangeRef]) -> None:
        self._refs, self._at = refs, 0

    def between(self, low: bytes, high: bytes | None) -> list[RangeRef]:
        """Those that overlap. `low` never goes back."""
        while self._at < len(self._refs) and self._refs[self._at].max_key < low:
            self._at += 1
        overlapping, at = [], self._at
        while at < len(self._refs) and (high is None or self._refs[at].min_key < high):
            overlapping.append(self._refs[at])
            at += 1
        return overlapping


def _unit(low: bytes, high: bytes | None, ref: RangeRef | None, groups: list[list[RangeRef]]) -> Unit | None:
    """None where all have the same ranges. One that all share holds the same entries in all, and no other's keys."""
    if ref is not None and all(any(other.id == ref.id for other in refs) for refs in groups):
        groups = [[other for other in refs if other.id != ref.id] for refs in groups]
        ref = None
    others = tuple(tuple(other.id for other in refs) for refs in groups)
    if ref is None and not any(others):
        return None
    read = {other.id: other.count for refs in groups for other in refs} | ({ref.id: ref.count} if ref else {})
    return Unit(low, high, ref.id if ref else "", others, sum(read.values()))


def parts_of(rows: int, size: int) -> int:
    """Into how many parts a unit is cut of which so many rows, of so many bytes together, are planned. At least 1."""
    return max(1, min(rows, max(-(-rows // ROWS_PER_PART), size // BYTES_PER_PART)))


def part_rows(rows: int, part: int, parts: int) -> Interval:
    """Which of a unit's planned rows are those of one part (from 0). All parts together are all rows, each once."""
    return part * rows // parts, (part + 1) * rows // parts


def grouped(sizes: Sequence[int], tasks: int) -> list[Interval]:
    """Neighbours that share a task: at most so many groups, of about the same size together."""
    share = (sum(sizes) + len(sizes)) / tasks
    groups, before = [], 0
    for size in sizes:
        groups.append(int((before + (size + 1) / 2) / share))
        before += size + 1
    cuts = [at for at in range(1, len(sizes)) if groups[at] != groups[at - 1]]
    return list(pairwise([0, *cuts, len(sizes)])) if sizes else []


def holders(target: Sequence[RangeRef], keys: Iterable[bytes]) -> Mapping[str, list[bytes]]:
    """The range ids that may hold these keys, each with its keys; a key that no range can hold is left out."""
    lasts = [ref.max_key for ref in target]
    keys_by_range: dict[str, list[bytes]] = defaultdict(list)
    for key in keys:
        at = bisect_left(lasts, key)
        if at < len(target) and target[at].min_key <= key:
            keys_by_range[target[at].id].append(key)
    return keys_by_range
