"""How the targets of a rule describe versions of keys that somebody named: asked by several threads, compared with how
the source does. Nothing is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from core.errors import LakeMirrorError
from core.replicating.version_merging import Keyed
from core.replicating.versions import Chain, Version
from core.travelling.copies import Pair, copies, digest_of
from core.travelling.describing import Description, Tags, matches
from spark_jobs.replicate.carrying import Describes, Seen, described, differing
from spark_jobs.replicate.chains import Terms
from spark_jobs.replicate.of_versions.carrying import with_sources


class _Asked(NamedTuple):
    """A pair of a key, and what HEAD told of the copy."""

    key: str
    pair: Pair
    there: Seen


@dataclass
class OwnDescriptions:
    """How the source describes versions, asked once for all targets."""

    place: Any
    describer: Describes
    pool: Executor
    _known: dict[tuple[str, str], Description | None] = field(default_factory=dict)

    def of(self, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], Description | None]:
        """Of these keys and versions; None for what is gone, or can't be asked now."""
        new = [one for one in dict.fromkeys(wanted) if one not in self._known]
        self._known |= dict(zip(new, self.pool.map(self._asked, new), strict=True))
        return {one: self._known[one] for one in wanted}

    def _asked(self, one: tuple[str, str]) -> Description | None:
        key, version = one
        try:
            seen = self.place.head(key, version)
            return None if seen is None else described(self.describer, key, seen.told, version)
        except LakeMirrorError:
            return None


@dataclass
class ComparedVersions:
    """What one target says of versions, compared with the source."""

    place: Any
    describer: Describes
    own: OwnDescriptions
    pool: Executor
    now: Callable[[], datetime]

    def differing(
        self, items: Sequence[Keyed], terms: Terms, unwanted: Callable[[Chain], Collection[str]], tags: Tags
    ) -> dict[str, str]:
        """The keys of which a version that has these tags is described otherwise, with what names how the source
        describes its versions; "" where somebody could not be asked."""
        there = dict(zip((item.key for item in items), self.pool.map(self._chain, items), strict=True))
        heads = self._heads([(key, one) for key, chain in there.items() for one in chain or () if not one.marker])
        asked, unknown = list[_Asked](), {key for key, chain in there.items() if chain is None}
        for item in items:
            seen, chain = heads[item.key], there[item.key]
            if chain is None or any(isinstance(one, LakeMirrorError) for one in seen.values()):
                unknown.add(item.key)
                continue
            known = {id_: one for id_, one in seen.items() if one is not None}
            chosen = {"but": unwanted(item.chain), "markers": terms.markers, "purges": not terms.shows}
            pairs = copies(item.key, item.chain, with_sources(chain, known), exact=terms.exact, **chosen)
            asked += [_Asked(item.key, pair, known[pair.there.id]) for pair in pairs]
        return self._compared(asked, tags) | dict.fromkeys(unknown, "")

    def _compared(self, asked: Sequence[_Asked], tags: Tags) -> dict[str, str]:
        own = self.own.of([(one.key, one.pair.own.id) for one in asked])
        differ = self.pool.map(lambda one: self._differs(one, own[one.key, one.pair.own.id], tags), asked)
        keys = {one.key for one, differs in zip(asked, differ, strict=True) if differs}
        named: dict[str, dict[str, str]] = defaultdict(dict)
        for (key, version), description in own.items():
            if key in keys:
                wanted = description is not None and matches(tags, description.tags or {})
                named[key][version] = description.digest if description is not None and wanted else ""
        return {key: digest_of(versions) for key, versions in named.items()}

    def _differs(self, one: _Asked, own: Description | None, tags: Tags) -> bool:
        """Also where nobody could tell: its link finds out."""
        if own is None:
            return True
        if not matches(tags, own.tags or {}):
            return False
        try:
            return bool(differing(own, self.describer, one.key, one.there, self.now(), one.pair.there.id))
        except LakeMirrorError:
            return True

    def _chain(self, item: Keyed) -> Chain | None:
        try:
            chain: Chain = self.place.chain(item.key)
        except LakeMirrorError:
            return None
        return chain

    def _heads(self, wanted: Sequence[tuple[str, Version]]) -> dict[str, dict[str, Seen | LakeMirrorError | None]]:
        heads: dict[str, dict[str, Seen | LakeMirrorError | None]] = defaultdict(dict)
        for (key, version), seen in zip(wanted, self.pool.map(self._head, wanted), strict=True):
            heads[key][version.id] = seen
        return heads

    def _head(self, one: tuple[str, Version]) -> Seen | LakeMirrorError | None:
        key, version = one
        try:
            seen: Seen | None = self.place.head(key, version.id)
        except LakeMirrorError as error:
            return error
        return seen
