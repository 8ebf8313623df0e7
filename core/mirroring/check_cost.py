"""What would the first check of so many objects take? By what was measured on two cores beside the store. Pure."""

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
