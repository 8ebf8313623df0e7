"""What would it take to check so many objects, first or deeper? By what was measured on two cores beside the store."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from core.mirroring.object_check import Depth

PAGE = 1000
FEW = 20
"""Fewer objects are asked for one by one."""
LISTED_A_SECOND = 100_000
ASKED_A_SECOND = 1_700
START_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Requests to the destination's store by their kind, and seconds; None where nobody can tell."""

    gets: int
    lists: int
    heads: int
    seconds: float | None

    @property
    def requests(self) -> int:
        """All of them."""
        return self.gets + self.lists + self.heads


def first_check(
    *, metaranges: int, ranges: int, entries: int, depth: Depth, content_sample: float
) -> tuple[Cost, Cost]:
    """At best and at worst: all objects lie close together in the store, or each lies by itself.

    How long reading content takes, the way to the store decides.
    """
    read = ceil(entries * content_sample) if depth is Depth.CONTENT else 0
    gets = metaranges + ranges + read
    lists = ceil(entries / PAGE) if entries >= FEW else 0
    at_best = Cost(gets, lists, 0 if lists else entries, _seconds(entries / LISTED_A_SECOND, read))
    return at_best, Cost(gets, 0, entries, _seconds(entries / ASKED_A_SECOND, read))


def _seconds(looking: float, read: int) -> float | None:
    return None if read else round(START_SECONDS + looking, 1)


@dataclass(frozen=True, slots=True)
class Recheck:
    """What a deeper setting has checked again before a branch moves: so many objects; `bytes` are read of them, 0 for
    none. `best` and `worst` seconds; None where nobody can tell."""

    depth: Depth
    objects: int
    bytes: int
    best: float | None
    worst: float | None


def rechecks(now: Depth, *, ranges: int, objects: int, size: int, content_sample: float) -> list[Recheck]:
    """One for each depth that is deeper than `now`; `size`: the bytes of the objects."""
    found = []
    for depth in now.deeper:
        best, worst = first_check(
            metaranges=0, ranges=ranges, entries=objects, depth=depth, content_sample=content_sample
        )
        share = content_sample if depth is Depth.CONTENT else 0
        found.append(Recheck(depth, objects, round(size * share), best.seconds, worst.seconds))
    return found
