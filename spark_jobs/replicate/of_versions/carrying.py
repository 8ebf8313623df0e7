"""Tags and locks of a key's versions that a target has: each is described there as the source describes it, in place,
by calls with the version's id. Headers and metadata of a version never change. No database.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from adapters.places.versions import OF_HEADER, VersionedPlace
from adapters.s3.originals import telling
from core.bringing import Side, Unbrought
from core.replicating.outcomes import Kind, Outcome, of_error
from core.replicating.versions import Chain, Version
from core.travelling.copies import Pair, copies
from spark_jobs.replicate.carrying import Carrying, Seen
from spark_jobs.replicate.chains import Terms

AT_ONCE = 32
"""So many versions of a key are compared before somebody asks whether that is to go on."""


class Found(NamedTuple):
    """A version with a copy that the target has of it, and what HEAD told of that."""

    pair: Pair
    there: Seen


def with_sources(chain: Chain, seen: Mapping[str, Seen]) -> list[Version]:
    """A target's chain, with what its versions say that they are copies of; without those that have just gone."""
    told = {id_: one.told.get(OF_HEADER, "") for id_, one in seen.items()}
    left = [version for version in chain if version.marker or version.id in seen]
    return [version._replace(of=version.of or told.get(version.id, "")) for version in left]


@dataclass(frozen=True, slots=True)
class VersionCarrying:
    """Compares and carries, one key at a time. `together` asks for several at a time."""

    carrying: Carrying
    source: VersionedPlace
    target: VersionedPlace
    together: Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]

    def found(self, key: str, source: Chain, there: Chain, terms: Terms, but: Collection[str]) -> list[Found]:
        """Which versions the target has copies of; `terms.shows`: what is to be purged stands for others, too. Raises
        Unbrought."""
        versions = [version for version in there if not version.marker]
        heads = self.together(partial(self._at_target, key), versions)
        seen = {one.id: head for one, head in zip(versions, heads, strict=True) if head is not None}
        chosen = {"exact": terms.exact, "but": but, "markers": terms.markers, "purges": not terms.shows}
        pairs = copies(key, source, with_sources(there, seen), **chosen)
        return [Found(pair, seen[pair.there.id]) for pair in pairs]

    def _at_target(self, key: str, version: Version) -> Seen | None:
        with telling(Side.DESTINATION):
            return self.target.head(key, version.id)

    def carried(self, key: str, some: Sequence[Found]) -> list[Outcome]:
        """Have the target describe these as the source does; what came of each."""
        return self.together(partial(self._one, key), some)

    def _one(self, key: str, one: Found) -> Outcome:
        try:
            return self._carried(key, *one)
        except Unbrought as unbrought:
            return of_error(unbrought)

    def _carried(self, key: str, pair: Pair, there: Seen) -> Outcome:
        with telling(Side.SOURCE):
            seen = self.source.head(key, pair.own.id)
        if seen is None:
            return Outcome(Kind.GONE)
        carrying = self.carrying.of_version(pair.own.id, pair.there.id)
        if not carrying.wants(key):
            return Outcome(Kind.DONE)
        done = carrying.carry(key, seen, there)
        assert done is not None  # only headers need the bytes, and those of versions are not compared
        return done
