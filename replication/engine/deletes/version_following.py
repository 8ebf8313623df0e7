"""While a look goes through a rule that copies all versions: what its targets show and the source hides is noted, and,
with `purges`, what of theirs is a copy of a version that the source has no more. Nothing is hidden or deleted here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from core.errors import LakeMirrorError
from core.replicating.deletes import FIRST_FOREIGN, MARKER, Merged, Own, merge_versions
from core.replicating.eligible import is_own
from core.replicating.version_merging import ChainWindow, Keyed
from core.replicating.versions import Chain, fingerprint, is_shown
from db import clock
from deployment.wiring import replication_jobs
from jobs.lease import Lease
from replication.engine import looking
from replication.engine.building import pin_of, terms_of
from replication.engine.deletes.manifests import StretchManifest
from replication.models import Link, Rule, Shard
from replication.transitions import doomed, duties, ledger, manifests
from replication.transitions.doomed import Doomed
from replication.transitions.ledger import HIDE, PURGE, Lack
from spark_jobs.replicate.chains import SHOWN, Terms, compared, unwanted
from spark_jobs.replicate.looking import Lacks, Looker


@dataclass(frozen=True, slots=True)
class FoundVersions:
    """What a window has shown of one link: what is to go, and what is hidden there by what is not the link's own."""

    doomed: Sequence[Doomed]
    lacks: Sequence[Lack]


@dataclass(frozen=True, slots=True)
class SeenVersions:
    """What a window has shown: of its keys the source shows so many."""

    stretch: tuple[bytes, bytes | None]
    shown: int
    links: Mapping[int, FoundVersions]


@dataclass
class VersionFollowing:
    """The links of such a rule, in one round of looking."""

    rule: Rule
    lease: Lease
    looker: Looker
    own: dict[int, StretchManifest] = field(default_factory=dict)
    shard: Shard | None = None
    last: str = ""

    def __post_init__(self) -> None:
        purges, links = self.rule.purges, self.looker.links
        self._terms = {link.pk: terms_of(link)._replace(shows=True) for link in links}
        # What comes from now on may not be in what the targets list: it is not taken out of what came.
        self._came = {link.pk: manifests.since(link.pk) for link in links} if purges else {}
        self._pinned = {link.pk for link in links if purges and self._is_pinned(link)}
        self._rows: dict[int, Any] = {}
        self._shown = Counter[int]()

    def _is_pinned(self, link: Link) -> bool:
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
        goes_on = self.last != bytes(shard.low).decode()
        unsure = set[int]()
        for link in self.looker.links:
            row = self._opened(link, shard) if self.rule.purges else manifests.row_of(link.pk, shard)
            if row is None:
                unsure |= {link.pk} if link.pk in self._pinned or not self._is_new(link) else set()
                row = manifests.row_of(link.pk, shard)
            self._rows[link.pk] = row
            self._shown[link.pk] = row.shown_seen if goes_on else 0
        self._note_unsure(unsure)

    def _is_new(self, link: Link) -> bool:
        """Whether it had written nothing when this look began: so it had nothing that could be gone at the source."""
        began = self.rule.cycle_began_at
        return link.pinned_at is None or (began is not None and link.pinned_at >= began)

    def _opened(self, link: Link, shard: Shard) -> Any:
        """The row of its manifest; None where nobody knows what is the link's own."""
        if link.pk not in self._pinned:
            return None
        try:
            state = replication_jobs.state_of(link.region, link.uri)
            manifest = StretchManifest(link, shard, state, self._came[link.pk], self.last)
        except LakeMirrorError:
            return None
        self.own[link.pk] = manifest
        return manifest.row

    def merge(self, window: ChainWindow, *, ends: bool) -> SeenVersions:
        """What a window says; `ends`: the stretch ends with it. Raises what the source answers."""
        if missing := self.own.keys() - window.there.keys():
            self._note_unsure(missing)
            self.own = {link_id: manifest for link_id, manifest in self.own.items() if link_id in window.there}
        assert self.shard is not None
        high = None if self.shard.high is None else bytes(self.shard.high)
        stretch = self.last.encode(), high if ends else window.last.encode()
        items = [item for item in window.items if self.looker.wants(item)]
        shown = sum(is_shown(item.chain) for item in items)
        found = {link_id: self._merged(link_id, window, items, stretch) for link_id in window.there}
        self.last = window.last
        return SeenVersions(stretch, shown, found)

    def allowed(self, window: ChainWindow, lacks: Lacks, found: SeenVersions) -> Lacks:
        """What is to be copied, of what a window lacks: all of it. What was deleted on one side is a marker there."""
        return lacks

    def _merged(
        self, link_id: int, window: ChainWindow, items: Sequence[Keyed], stretch: tuple[bytes, bytes | None]
    ) -> FoundVersions:
        there, gone = window.there[link_id], list[Own]()
        known: Mapping[str, Mapping[str, Own]] = {}
        if link_id in self.own:
            known, gone = self._own_of(link_id, window, stretch)
        purged = {(one.key, one.version) for one in gone}
        if gone:
            self.looker.source.answers()  # a listing of nothing does not say whether the bucket is there
        found, hidden = list[Doomed](), list[tuple[Keyed, Chain]]()
        for item in items:
            left = _left(item.key, there.get(item.key, ()), known.get(item.key, {}), purged)
            self._shown[link_id] += is_shown(there.get(item.key, ()))
            marker = self._terms[link_id].hiding(item.key, item.chain, left, unwanted(self.rule, item.chain))
            if marker is not None:
                found.append(Doomed(HIDE, item.key, marker.id, left[-1].size))
            elif link_id in self.own and is_shown(item.chain) and left and left[-1].id != item.chain[-1].id:
                hidden.append((item, left))
        found += [Doomed(PURGE, one.key, one.version, one.size, one.etag, one.of) for one in gone]
        asked = self.looker.pool.map(lambda pair: self._is_hidden(link_id, *pair), hidden)
        lacks = [_shown(item) for (item, _), is_hidden in zip(hidden, asked, strict=True) if is_hidden]
        return FoundVersions(found, lacks)

    def _own_of(
        self, link_id: int, window: ChainWindow, stretch: tuple[bytes, bytes | None]
    ) -> tuple[Mapping[str, Mapping[str, Own]], list[Own]]:
        """What is the link's own, by key and version, and what of it the source has no more; the manifest has it."""
        manifest, there = self.own[link_id], window.there[link_id]
        known = manifest.versions_until(None if stretch[1] is None else stretch[1].decode())
        source = {item.key: item.chain for item in window.items}
        merged, own = Merged(), dict[str, Mapping[str, Own]]()
        strangers = list[str]()
        for key in sorted(key for key in there if key and not is_own(key)):
            chain, but = source.get(key, ()), set[str]()
            if chain:
                but = unwanted(self.rule, chain)
            listed, gone = merge_versions(
                key, chain, there[key], known.get(key, {}), exact=self._terms[link_id].exact, but=but
            )
            merged.own.extend(listed)
            merged.gone.extend(gone)
            own[key] = {one.version: one for one in listed}
            strangers += [] if chain or listed else [key]
        manifest.take(window.last, Merged(merged.own, merged.gone, len(strangers), strangers[:FIRST_FOREIGN]))
        return own, merged.gone

    def _is_hidden(self, link_id: int, item: Keyed, left: Chain) -> bool:
        """Whether nothing lacks but that the source's latest is the latest there; what can't be told now is not so."""
        but, place = unwanted(self.rule, item.chain), self.looker.places[link_id]
        terms: Terms = self._terms[link_id]
        try:
            with_it = compared(place, item.key, item.chain, left, terms, but)
            without = compared(place, item.key, item.chain, left, terms._replace(shows=False), but)
        except LakeMirrorError:
            return False
        return bool(with_it.plan.steps) and not without.plan.steps

    def note(self, windows: Sequence[SeenVersions]) -> None:
        """Write down what is to go, and what is to be shown. Inside of the look's transaction, with the links held."""
        now = clock.now()
        for seen in windows:
            manifests.count_shown(self.rule.pk, seen.shown)
            lacks = {link_id: found.lacks for link_id, found in seen.links.items() if found.lacks}
            duties.wake_links(looking.note(self.rule, lacks))
            for link_id, found in sorted(seen.links.items()):
                link = ledger.hold(link_id)
                if link_id in self.own and manifests.is_forgotten(self.own[link_id].row):
                    self._note_unsure({link_id})  # what this look went by does not hold any more
                    continue
                if link is not None and not link.removing:
                    doomed.note(link, seen.stretch, found.doomed, now)

    def leave(self, *, ended: bool) -> None:
        """The look goes on elsewhere, or another time: what it has seen is kept. Raises Fenced."""
        for link_id, row in self._rows.items():
            row.shown_seen = 0 if ended else self._shown[link_id]
            row.shown_objects = self._shown[link_id] if ended else row.shown_objects
        for link_id, manifest in self.own.items():
            try:
                manifest.leave(self.lease, ended=ended)
            except LakeMirrorError:
                self._note_unsure({link_id})
        others = [row for link_id, row in self._rows.items() if link_id not in self.own]
        if others:
            with self.lease.transaction():
                ledger.hold_all(self.rule.pk)
                manifests.keep_shown(others)
        self.own, self._rows, self.shard = {}, {}, None

    def _note_unsure(self, link_ids: Set[int]) -> None:
        """But for those that have never written anything: they have nothing of their own."""
        if link_ids:
            Link.objects.filter(pk__in=link_ids, pinned_at__isnull=False).update(unsure_deletes=True)


def _left(key: str, there: Chain, known: Mapping[str, Own], purged: Set[tuple[str, str]]) -> Chain:
    """What a target has without what is to be purged, and of which versions that is a copy, as far as it is known."""
    return [
        one._replace(of=known[one.id].of) if one.id in known and known[one.id].etag != MARKER else one
        for one in there
        if (key, one.id) not in purged
    ]


def _shown(item: Keyed) -> Lack:
    return Lack(item.key.encode(), item.size, fingerprint(item.chain), described=SHOWN)
