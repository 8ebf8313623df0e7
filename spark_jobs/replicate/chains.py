"""What a target lacks of a key's chain: planned by what the listings tell, and by HEAD where that leaves it open."""

from __future__ import annotations

from collections.abc import Callable, Collection
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
    own; `hides`: what the target shows may be hidden; `shows`: what is hidden there is written once more on top;
    `markers`: they are copied, too."""

    exact: bool
    newest: bool = False
    hides: bool = True
    shows: bool = True
    markers: bool = True

    def plan(self, key: str, source: Chain, there: Chain, but: Collection[str] = ()) -> Plan:
        """What the target lacks of a key; `but` of these versions."""
        return plan(key, source, there, but=but, **self._asdict())

    def hiding(self, key: str, source: Chain, there: Chain, but: Collection[str] = ()) -> Version | None:
        """The marker that has to hide what the target shows."""
        if not self.markers:
            return None
        return hiding(key, source, there, but=but, exact=self.exact, newest=self.newest)


Tagged = Callable[[str, Version], bool]
"""Whether a version of a key has the tags that the rule asks for; markers are not asked about."""


class Compared(NamedTuple):
    """What lacks; the target's chain with what was asked about it; and, of what would have lacked, the ids of versions
    that have not the tags which the rule asks for."""

    plan: Plan
    there: Chain
    untagged: frozenset[str] = frozenset()


def compared(
    place: KnowsCopies,
    key: str,
    source: Chain,
    there: Chain,
    terms: Terms,
    but: Collection[str] = (),
    tagged: Tagged | None = None,
) -> Compared:
    """What a target lacks of a key; `but` of these versions. Raises what the target answers to HEAD, and what `tagged`
    does."""
    made = terms.plan(key, source, there, but)
    if made.lacks and (doubted := doubts(source, there, exact=terms.exact)):
        names = {version.id: place.copy_of(key, version.id) for version in doubted}
        if any(names.values()):
            there = [version._replace(of=names.get(version.id, version.of)) for version in there]
            made = terms.plan(key, source, there, but)
    return Compared(made, there) if tagged is None else _of_tagged(tagged, key, source, there, terms, but, made)


def _of_tagged(
    tagged: Tagged, key: str, source: Chain, there: Chain, terms: Terms, but: Collection[str], made: Plan
) -> Compared:
    """Tags are asked for where a version lacks alone: what is at the target stays, whatever became of them."""
    asked, untagged = set[str](), set[str]()
    while new := [one for one in (*(step.version for step in made.steps), *made.conflicts) if one.id not in asked]:
        asked |= {one.id for one in new}
        untagged |= {one.id for one in new if not one.marker and not tagged(key, one)}
        made = terms.plan(key, source, there, {*but, *untagged})
    return Compared(made, there, frozenset(untagged))


def unwanted(rule: Chooses, chain: Chain) -> set[str]:
    """The ids of versions that a rule does not copy, by when they were written."""
    if rule.existing and rule.new:
        return set()
    return {version.id for version in chain if not rule.wants(time_of(version.modified))}
