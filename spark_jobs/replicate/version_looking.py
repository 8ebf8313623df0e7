"""What the targets of a rule lack of all versions of its keys: chains are compared, and a key whose chains differ is
noted once, however many versions lack. Of keys that somebody named, tags and locks of each version are, too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from core.errors import LakeMirrorError, NotFound, Throttled, Unreachable
from core.replicating.eligible import is_copied
from core.replicating.merging import Read
from core.replicating.version_merging import ChainCursor, Keyed, windows
from core.replicating.versions import Chain, Version, doubts, fingerprint
from core.travelling.describing import matches
from spark_jobs.replicate.chains import Tagged, Terms, compared, unwanted
from spark_jobs.replicate.lacking import Hidden, Lack
from spark_jobs.replicate.looking import Asking, Lacks, LookedLink, Looker
from spark_jobs.replicate.of_versions.comparing import ComparedVersions, OwnDescriptions


class VersionLooker(Looker):
    """A Looker for a rule that copies all versions."""

    def place(self, region: str, uri: str) -> Any:
        return self.opens.place(region, uri, versions=True)

    def _terms_of(self, link: LookedLink) -> Terms:
        """What hides something waits until it has been judged, and so does what shows something where it may be that
        only a purge has not been done yet."""
        shows, markers = not self.rule.purges, not self._terms.tags
        return Terms(bool(link.exact), self.rule.both_ways, hides=False, shows=shows, markers=markers)

    @property
    def tagged(self) -> Tagged | None:
        """Whether a version has the tags that the rule asks for; None: it asks for none."""
        return self._is_tagged if self._terms.tags else None

    def _is_tagged(self, key: str, version: Version) -> bool:
        try:
            return matches(self._terms.tags, self._describes.tags(key, version.id))
        except NotFound:
            return False
        except LakeMirrorError:
            return True  # its links find out why it can't be asked

    def windows(
        self, low: str, high: str | None, but: Collection[int] = (), ahead: Callable[[Read], Read] = lambda read: read
    ) -> Iterator[Any]:
        """As a Looker's, of chains; nothing is read `ahead`, for where a page begins the one before it tells."""
        targets = {pk: place.versions for pk, place in self.places.items() if pk not in but}
        each = self.pool.map if len(targets) > 1 else map
        yield from windows(self.source.versions, targets, low, high, each, tail=self.rule.purges)

    def wants(self, item: Any) -> bool:
        """Whether the rule copies anything of a key."""
        return is_copied(item.key) and len(unwanted(self.rule, item.chain)) < len(item.chain)

    def lacking(self, window: Any, items: Sequence[Any], fresh: Collection[int] = ()) -> Lacks:
        """What the targets lack of these keys of a window, by link."""
        terms = {link.pk: self._terms_of(link) for link in self.links}
        return {pk: self._lacking(pk, terms[pk], items, there) for pk, there in window.there.items()}

    def _lacking(self, link_id: int, terms: Terms, items: Sequence[Keyed], there: Mapping[str, Chain]) -> list[Lack]:
        clear, doubted = list[Lack](), list[tuple[Keyed, Chain]]()
        for item in items:
            own, but = there.get(item.key, ()), unwanted(self.rule, item.chain)
            made = terms.plan(item.key, item.chain, own, but)
            if made.lacks and (self.tagged or doubts(item.chain, own, exact=terms.exact)):
                doubted.append((item, own))
            elif made.lacks:
                clear.append(_lack(item, made.bytes, absent=True))
        asked = self.pool.map(partial(self._lack_of, link_id, terms), doubted)
        return clear + [lack for lack in asked if lack is not None]

    def _lack_of(self, link_id: int, terms: Terms, pair: tuple[Keyed, Chain]) -> Lack | None:
        """By HEAD, too; what can't be told now is for the link to find out."""
        item, there = pair
        try:
            made = compared(
                self.places[link_id],
                item.key,
                item.chain,
                there,
                terms,
                unwanted(self.rule, item.chain),
                self.tagged,
            ).plan
        except LakeMirrorError:
            return _lack(item, item.size, absent=True)
        return _lack(item, made.bytes, absent=True) if made.lacks else None

    # --- of keys that somebody named ----------------------------------------------------------------------------------

    def named_after(self, after: str) -> tuple[list[Asking], bool]:
        """As a Looker's, also of keys that a marker hides: of each the versions are listed, and each is asked about."""
        cursor = ChainCursor(self.source.versions, after)
        found = [Asking(key, 1 + sum(not one.marker for one in chain)) for key, chain in cursor.pages()]
        return found, cursor.more

    def lacking_of(
        self, keys: Sequence[str], tried: Collection[int] = (), beside: Collection[str] | None = None
    ) -> Lacks:
        """What the targets lack of these keys, or describe otherwise. Raises what the source answers for one of
        them."""
        self.hidden.clear()
        named = [key for key in keys if is_copied(key)]
        chains = dict(zip(named, self.pool.map(self._chain, named), strict=True))
        unknown = [Lack(key.encode(), -1, "") for key, chain in chains.items() if chain is None]
        items = [Keyed(key, chain) for key, chain in chains.items() if chain]
        wanted = [item for item in items if self.wants(item)]
        compared_too = [one for one in wanted if beside is None or one.key in beside] if self._compares else []
        own = OwnDescriptions(self.source, self._describes, self.pool)
        lacks: dict[int, list[Lack]] = defaultdict(list)
        for link in self.links:
            found = self.pool.map(partial(self._lack_now, link), wanted)
            lacking = {lack.key: lack for lack in found if lack is not None}
            for lack in self._otherwise(link, compared_too, own):
                lacks_too = lacking.get(lack.key)
                lacking[lack.key] = lack._replace(size=lacks_too.size) if lacks_too else lack
            lacks[link.pk] = unknown + list(lacking.values())
        return lacks

    @property
    def _compares(self) -> bool:
        """Whether changes of tags and locks are carried; of two sides nobody knows which one's is newer."""
        return self._terms.all and not self.rule.both_ways

    def _otherwise(self, link: LookedLink, items: Sequence[Keyed], own: OwnDescriptions) -> list[Lack]:
        """The keys of which a target describes a version otherwise; what can't be told now is for the link to find
        out."""
        if link.pk not in self.places:
            return [_lack(item, 0) for item in items]
        comparing = ComparedVersions(self.places[link.pk], self._describers[link.pk], own, self.pool, self.opens.now)
        found = comparing.differing(items, self._terms_of(link), partial(unwanted, self.rule), self._terms.tags)
        return [_lack(item, 0, described=found[item.key]) for item in items if item.key in found]

    def _chain(self, key: str) -> Chain | None:
        """The source's; None for one that can't be asked about: its links find out why. Raises where nobody answers."""
        try:
            chain: Chain = self.source.chain(key)
        except (Throttled, Unreachable):
            raise
        except LakeMirrorError:
            return None
        return chain

    def _lack_now(self, link: LookedLink, item: Keyed) -> Lack | None:
        if link.pk not in self.places:
            return _lack(item, item.size, absent=True)
        try:
            there = self.places[link.pk].chain(item.key)
        except LakeMirrorError:
            return _lack(item, item.size, absent=True)
        terms = self._terms_of(link)
        marker = terms.hiding(item.key, item.chain, there, unwanted(self.rule, item.chain))
        if marker is not None:
            self.hidden.setdefault(link.pk, []).append(Hidden(item.key, marker.id, there[-1].size))
        return self._lack_of(link.pk, terms, (item, there))


def _lack(item: Keyed, size: int, *, absent: bool = False, described: str = "") -> Lack:
    """`absent`: nobody has begun to bring what lacks, and what is there is not to be compared."""
    return Lack(item.key.encode(), size, fingerprint(item.chain), absent, described)
