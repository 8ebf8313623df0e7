"""Deletions where rules lead both ways, as a look goes through a rule: what lacks at either end, and was there, is told
from what never came (core/replicating/both_ways/tombstones.py). Nothing is deleted here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from adapters.places.reader import time_of
from core.errors import LakeMirrorError
from core.replicating.both_ways.tombstones import Act, Have, Since, Step, Tombstone, mark_of, step, unless_newer
from core.replicating.deletes import Merged, Own
from core.replicating.eligible import is_copied
from core.replicating.merging import Window
from db import clock
from replication.engine.deletes import ends
from replication.models import Link, Shard
from replication.transitions import tombstones
from replication.transitions.tombstones import Known
from spark_jobs.replicate.both_ways import have
from spark_jobs.replicate.looking import Looker

_SEEN_AGAIN = timedelta(days=1)
"""So often it is noted that what was deleted is still to be deleted elsewhere."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a window says of one link. `gone`: to be deleted at the target; `barred`: keys that are not to be copied
    there; `buried`: what is known of each end from now on, by its name."""

    merged: Merged
    gone: Sequence[Own] = ()
    barred: frozenset[bytes] = frozenset()
    buried: Mapping[str, Mapping[str, Tombstone]] = field(default_factory=dict)


class Stretch(NamedTuple):
    """What a window has of one link: which keys its ends list, what the link has of them as its own, and the tombstones
    at both."""

    source: frozenset[str]
    there: Mapping[str, tuple[int, str]]
    known: Mapping[str, Own]
    at_source: Mapping[str, Known]
    at_target: Mapping[str, Known]

    def lacking(self) -> list[str]:
        """Keys of which one end lacks what was at both, or of which there are tombstones: those are asked about."""
        wanted = {key for key in self.known if key not in self.source or key not in self.there}
        wanted |= self.at_source.keys() | self.at_target.keys()
        return sorted(key for key in wanted if is_copied(key) and not (key in self.source and key in self.there))


def marks(window: Window) -> dict[str, str]:
    """What tells each object of the source from what is written there later."""
    return {item.key: mark_of(time_of(item.modified), item.etag) for item in window.items}


@dataclass
class BothEnds:
    """The links of one rule, in one round of looking."""

    looker: Looker
    links: Mapping[int, Link]

    def __post_init__(self) -> None:
        self._source = ends.source_of(self.looker.rule)
        self._targets = {pk: ends.target_of(link) for pk, link in self.links.items()}

    def judge(
        self,
        link_id: int,
        shard: Shard,
        window: Window,
        bounds: tuple[bytes, bytes | None],
        known: Mapping[str, Own],
        merged: Merged,
    ) -> Told:
        """What a window says of a link that has this of it as its own; `bounds`: where it begins and ends. Raises what
        either end's bucket answers, where something is gone there."""
        at_source = tombstones.within(self._source, *bounds)
        at_target = tombstones.within(self._targets[link_id], *bounds)
        keys = frozenset(item.key for item in window.items)
        stretch = Stretch(keys, window.there[link_id], known, at_source, at_target)
        asked = stretch.lacking()
        buried = self._over(link_id, shard, stretch)
        if not asked:
            return Told(merged, buried=buried)
        steps = dict(zip(asked, self.looker.pool.map(partial(self._step, link_id, stretch), asked), strict=True))
        self.looker.source.answers()  # a 404 does not say whether the bucket is there
        self.looker.places[link_id].answers()
        return self._told(link_id, stretch, merged, steps, buried)

    def _step(self, link_id: int, stretch: Stretch, key: str) -> tuple[Step, Have | None] | None:
        """What follows for a key, and what the target has; None: nobody can tell now."""
        at_source, at_target = _buried(stretch.at_source.get(key)), _buried(stretch.at_target.get(key))
        own, frozen = stretch.known.get(key), self.links[link_id].frozen_since is not None
        mark, etag = (None, None) if own is None else (own.source, own.etag)
        try:
            seen = target = None
            if key in stretch.source or key in stretch.there:
                seen, target = self._heads(link_id, key)
            source = None if seen is None else self._have(link_id, key, seen)
            if frozen and source is None and target is not None:
                return None
            told = step(mark, etag, source, target, at_source, at_target)
            if told.act is Act.NOTHING and seen is not None and source is not None and target is None:
                uri = self.looker.source.uri(key)
                told = unless_newer(told, source, self.looker.origins[link_id].newest(uri, seen))
        except LakeMirrorError:
            return None
        return told, target

    def _heads(self, link_id: int, key: str) -> tuple[Any, Have | None]:
        """What the source tells of a key, and what the target has."""
        origins, place = self.looker.origins[link_id], self.looker.places[link_id]
        source, target = self.looker.source.head(key), place.head(key)
        return source, None if target is None else have(origins.at_target(place.uri(key), target), target)

    def _have(self, link_id: int, key: str, seen: Any) -> Have:
        return have(self.looker.origins[link_id].at_source(self.looker.source.uri(key), seen), seen)

    def _told(self, link_id: int, stretch: Stretch, merged: Merged, steps: Mapping[str, Any], buried: Any) -> Told:
        gone, barred, own = list[Own](), set[bytes](), {one.key: one for one in merged.own}
        for key, found in steps.items():
            if found is None:  # what the source lists is noted, and whoever copies it finds out
                if key in stretch.known:
                    own[key] = stretch.known[key]
                continue
            told, target = found
            self._note(buried, self._source, key, told.at_source, stretch.at_source.get(key), told.act)
            self._note(buried, self._targets[link_id], key, told.at_target, stretch.at_target.get(key), told.act)
            if told.act is Act.DELETE and target is not None:
                gone.append(Own(key, target.size, target.etag))
            elif key not in stretch.source:
                own.pop(key, None)  # it comes back, or is nowhere
            if told.act is Act.NOTHING and key in stretch.source and target is None:
                barred.add(key.encode())
        kept = [own[key] for key in sorted(own)]
        return Told(replace(merged, own=kept, gone=gone), gone, frozenset(barred), buried)

    def _note(
        self,
        buried: dict[str, dict[str, Tombstone]],
        place: str,
        key: str,
        now: Tombstone | None,
        before: Known | None,
        act: Act,
    ) -> None:
        if now is None:
            return
        again = before is None or now != before.buried
        if again or (act is Act.DELETE and before is not None and before.found_at < clock.now() - _SEEN_AGAIN):
            buried.setdefault(place, {})[key] = now

    def _over(self, link_id: int, shard: Shard, stretch: Stretch) -> dict[str, dict[str, Tombstone]]:
        """Of which keys a place has something again; as long as the look goes on a deletion may be younger than it."""
        found: dict[str, dict[str, Tombstone]] = {}
        sides = ((self._source, stretch.source, stretch.at_source),)
        sides += ((self._targets[link_id], frozenset(stretch.there), stretch.at_target),)
        for place, has, known in sides:
            for key, one in known.items():
                early = shard.began_at is not None and one.found_at < shard.began_at
                if key in has and early and one.buried.since is not Since.OVER:
                    found.setdefault(place, {})[key] = replace(one.buried, since=Since.OVER)
        return found


def _buried(known: Known | None) -> Tombstone | None:
    return None if known is None else known.buried
