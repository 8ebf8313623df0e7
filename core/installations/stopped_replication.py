"""Bucket replication that has stopped between two regions: several mirrors wait for what was written since. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.text.phrases import Phrase, count, name, say, sentence

Pair = tuple[str, str]
"""Where objects are written, and the region to which they are replicated."""
FEWEST = 2
"""A single mirror that waits may lack an object of its own."""
ON_THEIR_WAY = timedelta(minutes=1)
"""What arrived before may have been promoted so long after."""


@dataclass(frozen=True, slots=True)
class Waits:
    """A mirror that waits for nothing but arrivals, since when it has missed the first."""

    mirror: str
    pair: Pair
    since: datetime


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing that was written `since` then has arrived, as far as these mirrors can tell; they are by name."""

    pair: Pair
    since: datetime
    mirrors: Sequence[str]


def find_stops(waiting: Iterable[Waits], arrived_at: Mapping[Pair, datetime]) -> list[Stop]:
    """Pairs of regions between which nothing arrives, by name. `arrived_at`: when a branch of any mirror there last
    moved forward. A mirror that waits since before that lacks something of its own."""
    stalled: dict[Pair, list[Waits]] = defaultdict(list)
    for one in waiting:
        arrived = arrived_at.get(one.pair)
        if arrived is None or arrived <= one.since + ON_THEIR_WAY:
            stalled[one.pair].append(one)
    return [
        Stop(pair, min(one.since for one in some), sorted(one.mirror for one in some))
        for pair, some in sorted(stalled.items())
        if len(some) >= FEWEST
    ]


def stop_phrase(stop: Stop) -> Phrase:
    """One sentence: what does not arrive, since when, and how many mirrors wait."""
    written = say("objects written to ", name(stop.pair[0]), f" since {stop.since:%H:%M} UTC")
    waiting = count(len(stop.mirrors), "mirror waits", "mirrors wait")
    return sentence(written, " have not arrived in ", name(stop.pair[1]), f": {waiting}")


def stop_remedy(stop: Stop) -> str:
    """What to do about it."""
    source, region = stop.pair
    return (
        f"Check the bucket replication from {source} to {region}: whether its rule is enabled, its role may read and "
        "write, and the destination takes writes. The mirrors continue by themselves once objects arrive."
    )
