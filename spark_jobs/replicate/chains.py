"""What a target lacks of a key's chain: planned by what the listings tell, and by HEAD where that leaves it open."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple, Protocol

from adapters.places.reader import time_of
from core.replicating.versions import Chain, Plan, doubts, plan


class KnowsCopies(Protocol):
    """What is asked of a target; adapters/places/versions.py."""

    def copy_of(self, key: str, version: str) -> str: ...


class Chooses(Protocol):
    """A rule, as far as it chooses by when objects were written."""

    @property
    def existing(self) -> bool: ...
    @property
    def new(self) -> bool: ...
    def wants(self, modified: datetime | None) -> bool: ...


class Terms(NamedTuple):
    """How chains are compared for a link: `exact` as its target is; `markers`: whether they are copied; `newest`: the
    target may have newer versions of its own."""

    exact: bool
    markers: bool = True
    newest: bool = False

    def plan(self, key: str, source: Chain, there: Chain, but: Collection[str] = ()) -> Plan:
        """What the target lacks of a key; `but` of these versions."""
        given = {"exact": self.exact, "markers": self.markers, "newest": self.newest}
        return plan(key, source, there, but=but, **given)


class Compared(NamedTuple):
    """What lacks, and the target's chain with what was asked about it."""

    plan: Plan
    there: Chain


def compared(
    place: KnowsCopies, key: str, source: Chain, there: Chain, terms: Terms, but: Collection[str] = ()
) -> Compared:
    """What a target lacks of a key; `but` of these versions. Raises what the target answers to HEAD."""
    made = terms.plan(key, source, there, but)
    if not made.lacks or not (doubted := doubts(source, there, exact=terms.exact)):
        return Compared(made, there)
    names = {version.id: place.copy_of(key, version.id) for version in doubted}
    if not any(names.values()):
        return Compared(made, there)
    there = [version._replace(of=names.get(version.id, version.of)) for version in there]
    return Compared(terms.plan(key, source, there, but), there)


def unwanted(rule: Chooses, chain: Chain) -> set[str]:
    """The ids of versions that a rule does not copy, by when they were written."""
    if rule.existing and rule.new:
        return set()
    return {version.id for version in chain if not rule.wants(time_of(version.modified))}
