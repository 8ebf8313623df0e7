"""Which places there are, and which rules lead between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.rule_fleet import AWAY, FAR, HOME

STAYS = "stays"
"""A key that nobody deletes, so that no place is ever empty."""
FOREIGN = "theirs"
"""Somebody else's objects at a target of the plain rule lie in this folder."""


@dataclass(frozen=True)
class Place:
    """A bucket in a region's store."""

    region: str
    bucket: str

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}"


@dataclass(frozen=True)
class Group:
    """Places whose objects are the same in the end, and the rules between them: (name, from, to, settings).

    `writers`: where people write. `versions`: its buckets keep all versions; `locks`: and have Object Lock."""

    name: str
    places: tuple[Place, ...]
    ways: tuple[tuple[str, Place, tuple[Place, ...]], ...]
    settings: dict[str, Any]
    keys: tuple[str, ...]
    versions: bool = False
    locks: bool = False
    writers: tuple[Place, ...] = field(default=())

    @property
    def both_ways(self) -> bool:
        return self.settings.get("conflict") == "newest"

    @property
    def rules(self) -> tuple[str, ...]:
        """Names of its rules."""
        return tuple(name for name, _, _ in self.ways)


def keys_of(number: int) -> tuple[str, ...]:
    """Names of all kinds."""
    forms = ("k{}", "d/k{}", "d/e/k {} é", "x+y%20/k{}", "z/k{}=&")
    return tuple(forms[at % len(forms)].format(f"{at:02}") for at in range(number))


def groups(*, exact: bool, keys: int = 30) -> list[Group]:
    """A pair both ways, a ring of three, a plain rule with locks to two targets, and, where stores take versions under
    their ids, a pair of all versions."""
    every = {"scan_every": 60, "overwrite": True, "delete_most": 10_000}
    names = keys_of(keys)
    one, two = Place(HOME, "pair-one"), Place(AWAY, "pair-two")
    pair = {**every, "conflict": "newest", "markers": True, "delete_percent": 20}
    ring = [Place(HOME, "ring-a"), Place(AWAY, "ring-b"), Place(FAR, "ring-c")]
    round_ = tuple((f"ring-{at}", ring[at], (ring[(at + 1) % 3],)) for at in range(3))
    source, targets = Place(HOME, "plain"), (Place(AWAY, "plain-there"), Place(HOME, "plain-here"))
    plain = {**every, "markers": True, "delete_percent": 20, "sweep_heads_per_second": 100}
    made = [
        Group("pair", (one, two), (("pair-there", one, (two,)), ("pair-back", two, (one,))), pair, names),
        Group("ring", tuple(ring), round_, {**pair, "delete_percent": 100}, names),
        Group("plain", (source, *targets), (("plain", source, targets),), plain, names, locks=True, writers=(source,)),
    ]
    if exact:
        here, there = Place(HOME, "versions-one"), Place(AWAY, "versions-two")
        ways = (("versions-there", here, (there,)), ("versions-back", there, (here,)))
        all_ = {**every, "versions": "all", "conflict": "newest", "delete_percent": 30}
        made.append(Group("versions", (here, there), ways, all_, names, versions=True))
    return [one if one.writers else _everywhere(one) for one in made]


def _everywhere(group: Group) -> Group:
    return Group(**{**group.__dict__, "writers": group.places})
