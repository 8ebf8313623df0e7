"""What several share of one limit, by priority: who comes first gets what it can use, the next ones the rest. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

LEAST_SHARE = 0.05
"""Of the limit each one has at least so much, as long as there are few of them; many share half of it evenly."""
FULL = 0.75
"""Who uses so much of its share could use more."""
HEADROOM = 1.4
"""Who doesn't, gets so many times what it uses: so it may grow."""


@dataclass(frozen=True, slots=True)
class Sharer:
    """Somebody who has something to do: lower priorities come first. `used`: per second, lately; `share`: what it might
    use meanwhile, None: nobody knows. `most`: its own limit, 0: none."""

    key: int
    priority: int
    used: float = 0.0
    share: float | None = None
    most: float = 0.0

    @property
    def wanted(self) -> float:
        """How much it can use, per second, by what it used."""
        own = self.most or math.inf
        if self.share is None or self.used >= FULL * min(self.share, own):
            return own
        return min(own, self.used * HEADROOM)


def shares(limit: float, sharers: Iterable[Sharer]) -> Mapping[int, float]:
    """What each may use, by key. All together it is the limit at most, and each has something."""
    by_turn = sorted(sharers, key=lambda one: (one.priority, one.key))
    if not by_turn:
        return {}
    least = limit * min(LEAST_SHARE, 0.5 / len(by_turn))
    given = {one.key: least for one in by_turn}
    left = limit - least * len(by_turn)
    for _, group in groupby(by_turn, key=lambda one: one.priority):
        left = _give(list(group), given, left)
    return given


def _give(group: Sequence[Sharer], given: dict[int, float], left: float) -> float:
    """Those of one priority get the same of what is left, but none more than it can use; gives what is left then."""
    for number, one in enumerate(sorted(group, key=lambda one: one.wanted)):
        more = min(left / (len(group) - number), max(0.0, one.wanted - given[one.key]))
        given[one.key] += more
        left -= more
    return left
