"""What would a run of an export take? Requests and seconds for so many files and bytes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

PAGE = 1000
START_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast it goes. `measured`: as fast as earlier runs here; else it is assumed."""

    objects_per_second: float
    bytes_per_second: float
    measured: bool = False


WITHIN = Pace(500.0, 2e9)
"""Assumed of copies that one store makes by itself: 32 at a time, about 60 ms each."""
THROUGH = Pace(200.0, 60e6)
"""Assumed of copies between stores, through one machine: 32 at a time, and half a gigabit a second."""


@dataclass(frozen=True, slots=True)
class RunCost:
    """Requests to both stores by their kind; seconds."""

    gets: int
    lists: int
    puts: int
    deletes: int
    seconds: float

    @property
    def requests(self) -> int:
        """All of them."""
        return self.gets + self.lists + self.puts + self.deletes


def run_cost(
    *,
    copies: int,
    removals: int,
    size: int,
    ranges: int,
    within: bool,
    compare: bool,
    pace: Pace,
    objects_limit: int | None = None,
    bytes_limit: int | None = None,
) -> RunCost:
    """`within`: the store copies by itself. `compare`: the destination is listed first, not only where something is to
    be removed. Limits are the export's own. Ranges are read to plan, and again to copy. An object that goes in parts
    is counted as one request.
    """
    gets = 2 * ranges + (0 if within else copies)
    lists = ceil((removals + (copies if compare else 0)) / PAGE)
    objects = min(pace.objects_per_second, objects_limit or pace.objects_per_second)
    bandwidth = min(pace.bytes_per_second, bytes_limit or pace.bytes_per_second)
    seconds = START_SECONDS + max((copies + removals / PAGE) / objects, size / bandwidth)
    return RunCost(gets, lists, copies, ceil(removals / PAGE), round(seconds, 1))
