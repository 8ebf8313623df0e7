"""Planning of checks: which ranges, against which bases, and when to look again. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from zlib import crc32

from graveler.metarange import RangeRef


class Data(StrEnum):
    """What is known of a commit's metarange, ranges and objects at a mirror."""

    UNKNOWN = "unknown"
    WAITING = "waiting"
    COMPLETE = "complete"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class RangeCheck:
    """A range of `count` entries to check, and covered ranges (of `base_count`) whose equal entries need no look."""

    range_id: str
    base_ids: tuple[str, ...]
    count: int
    base_count: int = 0


def overlapping(ref: RangeRef, bases: Sequence[RangeRef]) -> list[RangeRef]:
    """The ranges of `bases` (sorted, disjoint) that share keys with `ref`."""
    first = bisect_left(bases, ref.min_key, key=lambda base: base.max_key)
    shared = []
    for base in bases[first:]:
        if base.min_key > ref.max_key:
            break
        shared.append(base)
    return shared


def plan_checks(needed: Iterable[RangeRef], bases: Sequence[RangeRef], covered: Mapping[str, Data]) -> list[RangeCheck]:
    """One check for each range without coverage; its bases are complete ranges of a covered ancestor."""
    usable = [base for base in bases if covered.get(base.id) is Data.COMPLETE]
    checks: dict[str, RangeCheck] = {}
    for ref in needed:
        if ref.id in covered or ref.id in checks:
            continue
        overlap = overlapping(ref, usable)
        base_ids = tuple(base.id for base in overlap)
        checks[ref.id] = RangeCheck(ref.id, base_ids, ref.count, sum(base.count for base in overlap))
    return list(checks.values())


def is_small(checks: Iterable[RangeCheck], most: int) -> bool:
    """Whether all of these build upon something, and no more than `most` entries have to be read."""
    planned = list(checks)
    return all(check.base_ids for check in planned) and sum(check.count + check.base_count for check in planned) <= most


def judge(range_ids: Iterable[str], covered: Mapping[str, Data]) -> Data:
    """A commit's data from its ranges: waiting for any, else gone with any, else complete."""
    states = {covered.get(range_id, Data.UNKNOWN) for range_id in range_ids}
    for worst in (Data.UNKNOWN, Data.WAITING, Data.GONE):
        if worst in states:
            return worst
    return Data.COMPLETE


def settled(left: int, gone: int, *, counted: int, kept: int) -> Data | None:
    """What a range in no question is by the number of problems that are `left` of it, `gone` of them at the source too.

    None: of the `counted` problems more than `kept` may never have got a name, so it is to be looked through anew.
    """
    if left == gone and counted > max(kept, left):
        return None
    return state_with(left, gone=gone)


def state_with(problems: int, *, gone: int) -> Data:
    """What a range is that has so many problems; `gone` of them are known to be missing at the source too."""
    if problems > gone:
        return Data.WAITING
    return Data.GONE if problems else Data.COMPLETE


def verify_again_at(range_id: str, checked_at: datetime, after: timedelta) -> datetime:
    """When a complete range is checked again: within the last quarter of `after`, each range at a time of its own."""
    return checked_at + after * (0.75 + 0.25 * crc32(range_id.encode()) / 2**32)


def pause_before_look(looks: int, *, most: float = 60.0) -> float:
    """Seconds until a missing thing is looked for again: 0.5 s, doubling up to the cooldown."""
    return min(0.5 * 2.0 ** min(looks, 30), most)
