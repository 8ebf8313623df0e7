"""What changed between two commits, read no further than they differ.

Ranges with equal ids hold equal entries, and the ranges of a metarange don't overlap; so no key of a common range can
also lie in one that differs. Only the others are read and merged by key: cost follows the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from graveler.entries import Entry
from graveler.metarange import RangeRef

OpenRange = Callable[[RangeRef], Iterable[Entry]]


class ChangeKind(StrEnum):
    """What happened to a path on the way from one side to the other."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class RangeDiff:
    """The ranges that only one side has, each in order of key."""

    removed: tuple[RangeRef, ...]
    added: tuple[RangeRef, ...]

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs: `before` is None where it was added, `after` where it was removed."""

    path: bytes
    before: Entry | None
    after: Entry | None

    @property
    def kind(self) -> ChangeKind:
        """Added, changed or removed."""
        if self.before is None:
            return ChangeKind.ADDED
        return ChangeKind.REMOVED if self.after is None else ChangeKind.CHANGED


def diff_ranges(a: Sequence[RangeRef], b: Sequence[RangeRef]) -> RangeDiff:
    """The ranges to look into: those of `a` that `b` lacks, and the other way round."""
    in_a, in_b = {ref.id for ref in a}, {ref.id for ref in b}
    return RangeDiff(tuple(ref for ref in a if ref.id not in in_b), tuple(ref for ref in b if ref.id not in in_a))


def diff(
    a: Sequence[RangeRef], b: Sequence[RangeRef], open_a: OpenRange, open_b: OpenRange | None = None
) -> Iterator[Change]:
    """The paths that differ from `a` to `b`, ascending. `open_a` (and `open_b`, where that side lies elsewhere) give
    a range's entries; at most one range of each side is open at a time."""
    differing = diff_ranges(a, b)
    return diff_entries(
        (entry for ref in differing.removed for entry in open_a(ref)),
        (entry for ref in differing.added for entry in (open_b or open_a)(ref)),
    )


def diff_entries(before: Iterable[Entry], after: Iterable[Entry]) -> Iterator[Change]:
    """Merges two runs of entries that ascend by path. Entries that differ in any field count as changed, an address
    not least: a mirror has to look for the object there."""
    left, right = iter(before), iter(after)
    a, b = next(left, None), next(right, None)
    while a is not None or b is not None:
        if b is None or (a is not None and a.path < b.path):
            assert a is not None
            yield Change(a.path, a, None)
            a = next(left, None)
        elif a is None or b.path < a.path:
            yield Change(b.path, None, b)
            b = next(right, None)
        else:
            if a != b:
                yield Change(a.path, a, b)
            a, b = next(left, None), next(right, None)
