"""What a target lacks of a key's chain: planned by what the listings tell, and by HEAD where that leaves it open."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple, Protocol

from adapters.places.reader import time_of
from core.replicating.versions import Chain, Plan, Version, doubts, hiding, plan

SHOWN = "shown"
"""What describes an open key whose latest version is hidden at the target by what is not the link's own."""


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
    """How chains are compared for a link: `exact` as its target is; `newest`: the target may have newer versions of its
    own; `hides`: what the target shows may be hidden; `shows`: what is hidden there is written once more on top."""

    exact: bool
    newest: bool = False
    hides: bool = True
    shows: bool = True

    def plan(self, key: str, source: Chain, there: Chain, but: Collection[str] = ()) -> Plan:
        """What the target lacks of a key; `but` of these versions."""
        return plan(key, source, there, but=but, **self._asdict())

    def hiding(self, key: str, source: Chain, there: Chain, but: Collection[str] = ()) -> Version | None:
        """The marker that has to hide what the target shows."""
        return hiding(key, source, there, but=but, exact=self.exact, newest=self.newest)


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
