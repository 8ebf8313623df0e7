"""While a look goes through a rule that follows deletions: source, target and manifest are merged, and what is gone at
the source is noted. Nothing is deleted here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from core.errors import LakeMirrorError
from core.replicating.both_ways.tombstones import Tombstone
from core.replicating.comparing import Alike, by_listing
from core.replicating.deletes import Merged, Own, merge
from core.replicating.merging import Window
from db import clock
from deployment.wiring import replication_jobs
from jobs.lease import Lease
from replication.engine.building import pin_of
from replication.engine.deletes.both_ends import BothEnds, marks
from replication.engine.deletes.ends import follows
from replication.engine.deletes.manifests import StretchManifest
from replication.models import Link, Rule, Shard
from replication.transitions import deletions, ledger, manifests, tombstones
from spark_jobs.replicate.looking import Lacks, Looker


@dataclass(frozen=True, slots=True)
class Found:
    """What a window has shown of one link. `gone`: to be deleted; `barred`: keys that are not to be copied; `buried`:
    what was deleted at either end, by its name, of rules that lead both ways."""

    stretch: tuple[bytes, bytes | None]
    gone: Sequence[Own]
    merged: Merged
    barred: frozenset[bytes] = frozenset()
    buried: Mapping[str, Mapping[str, Tombstone]] = field(default_factory=dict)


@dataclass
class Following:
    """The links of a rule whose deletions are followed, in one round of looking. Of others it does nothing."""

    rule: Rule
    lease: Lease
    looker: Looker
    at: dict[int, StretchManifest] = field(default_factory=dict)
    shard: Shard | None = None
    last: str = ""

    def __post_init__(self) -> None:
        # What comes from now on may not be in what the targets list: it is not taken out of what came.
        self._came = {link.pk: manifests.since(link.pk) for link in self.looker.links} if self.rule.markers else {}
        self._pinned = {link.pk for link in self.looker.links if self.rule.markers and self._is_pinned(link)}
        links = {link.pk: link for link in self.looker.links}
        self._both = BothEnds(self.looker, links) if follows(self.rule) else None

    def _is_pinned(self, link: Link) -> bool:
        """Whether its target is the one that was pinned: of any other nothing is known, and nothing written there."""
        if not link.identity or link.pk not in self.looker.places:
            return False
        link.rule = self.rule
        return pin_of(link, self.looker.places[link.pk]).is_there()

    def enter(self, shard: Shard) -> None:
        """A stretch is looked through, from where its look goes on; nothing, if it is already. Raises Fenced."""
        if self.shard is not None and self.shard.pk == shard.pk:
            return
        self.leave(ended=False)
        self.shard, self.last = shard, bytes(shard.after or shard.low).decode()
        if not self.rule.markers:
            return
        unsure = {link.pk for link in self.looker.links if link.pk in self._pinned or not self._is_new(link)}
        for link in self.looker.links:
            if link.pk not in self._pinned:
                continue
            try:
                state = replication_jobs.state_of(link.region, link.uri)
                self.at[link.pk] = StretchManifest(link, shard, state, self._came[link.pk], self.last)
                unsure.discard(link.pk)
            except LakeMirrorError:
                continue  # nobody knows what is the link's own, so none of it is judged
        self._note_unsure(unsure)

    def _is_new(self, link: Link) -> bool:
        """Whether it had written nothing when this look began: so it had nothing that could be gone at the source."""
        began = self.rule.cycle_began_at
        return link.pinned_at is None or (began is not None and link.pinned_at >= began)

    def merge(self, window: Window, *, ends: bool) -> dict[int, Found]:
        """What a window says of each link; `ends`: the stretch ends with it. Raises what the source answers."""
        if not self.at:
            return {}
        if missing := self.at.keys() - window.there.keys():
            self._note_unsure(missing)
            self.at = {link_id: manifest for link_id, manifest in self.at.items() if link_id in window.there}
        found = {link_id: self._merged(link_id, window, ends) for link_id in self.at}
        there = set[str]() if self._both is not None else self._still_there(found)
        for link_id, one in found.items():
            self.at[link_id].take(window.last, one.merged)
        self.last = window.last
        return {link_id: _without(one, there) for link_id, one in found.items()}

    def _merged(self, link_id: int, window: Window, ends: bool) -> Found:
        manifest, there = self.at[link_id], window.there[link_id]
        end = manifest.high if ends else window.last
        source = {item.key for item in window.items}
        wanted = [item for item in window.items if self.looker.wants(item)]
        # Only what the listings show to be the same: what merely may be is the link's if the link has copied it.
        equal = {item.key for item in wanted if by_listing(item.size, item.etag, there.get(item.key)) is Alike.EQUAL}
        known, stretch = manifest.until(end), (self.last.encode(), None if end is None else end.encode())
        if self._both is None:
            merged = merge(source, equal, there, known)
            return Found(stretch, merged.gone, merged)
        merged = merge(source, equal, there, known, marks(window))
        told = self._both.judge(link_id, manifest.shard, window, stretch, known, merged)
        return Found(stretch, told.gone, told.merged, told.barred, told.buried)

    def allowed(self, window: Window, lacks: Lacks, found: Mapping[int, Found]) -> Lacks:
        """What is to be copied, of what a window lacks: nothing that was deleted at a target. Where nobody knows what
        the link has there, nothing that it has not."""
        if self._both is None:
            return lacks
        unsure = self._pinned - found.keys()
        return {
            link_id: [
                lack
                for lack in some
                if (lack.key.decode() in window.there.get(link_id, ()) or link_id not in unsure)
                and not (link_id in found and lack.key in found[link_id].barred)
            ]
            for link_id, some in lacks.items()
        }

    def _still_there(self, found: Mapping[int, Found]) -> set[str]:
        """Of what the source did not list, what it has all the same, or nobody can tell. Raises unless its bucket
        answers."""
        asked: set[str] = set()
        for link_id, one in found.items():
            noted = deletions.known_in(link_id, *one.stretch) if one.gone else {}
            asked |= {own.key for own in one.gone if own.key not in noted or noted[own.key].etag != own.etag}
        keys = sorted(asked)
        there = {key for key, gone in zip(keys, self.looker.pool.map(self._is_gone, keys), strict=True) if not gone}
        if keys:
            self.looker.source.answers()
        return there

    def _is_gone(self, key: str) -> bool:
        try:
            return self.looker.source.head(key) is None
        except LakeMirrorError:
            return False

    def note(self, windows: Sequence[Mapping[int, Found]]) -> None:
        """Write down what is to be deleted. Inside of the look's transaction, which holds the links."""
        now = clock.now()
        for found in windows:
            for link_id in sorted(found):
                link = ledger.hold(link_id)
                if link_id in self.at and manifests.is_forgotten(self.at[link_id].row):
                    self._note_unsure({link_id})  # what this look went by does not hold any more
                    continue
                if link is not None and Rule.objects.filter(pk=link.rule_id, markers=True).exists():
                    deletions.note(link, found[link_id].stretch, found[link_id].gone, now)
                    for place, buried in sorted(found[link_id].buried.items()):
                        tombstones.save(place, buried, now)

    def leave(self, *, ended: bool) -> None:
        """The look goes on elsewhere, or another time: the manifests have what it has seen. Raises Fenced."""
        for link_id, manifest in self.at.items():
            try:
                manifest.leave(self.lease, ended=ended)
            except LakeMirrorError:
                self._note_unsure({link_id})
        self.at, self.shard = {}, None

    def _note_unsure(self, link_ids: Set[int]) -> None:
        """But for those that have never written anything: they have nothing of their own."""
        if link_ids:
            Link.objects.filter(pk__in=link_ids, pinned_at__isnull=False).update(unsure_deletes=True)


def _without(found: Found, there: set[str]) -> Found:
    """What is at the source after all is not to be deleted."""
    return replace(found, gone=[own for own in found.gone if own.key not in there])
