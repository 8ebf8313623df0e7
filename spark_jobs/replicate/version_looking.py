"""What the targets of a rule lack of all versions of its keys: chains are compared, and a key whose chains differ is
noted once, however many versions lack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from core.errors import LakeMirrorError, Throttled, Unreachable
from core.replicating.eligible import is_copied
from core.replicating.merging import Read
from core.replicating.version_merging import Keyed, windows
from core.replicating.versions import Chain, doubts, fingerprint
from spark_jobs.replicate.chains import Terms, compared, unwanted
from spark_jobs.replicate.lacking import Hidden, Lack
from spark_jobs.replicate.looking import Lacks, LookedLink, Looker


class VersionLooker(Looker):
    """A Looker for a rule that copies all versions."""

    def place(self, region: str, uri: str) -> Any:
        return self.opens.place(region, uri, versions=True)

    def _terms_of(self, link: LookedLink) -> Terms:
        """What hides something waits until it has been judged, and so does what shows something where it may be that
        only a purge has not been done yet."""
        return Terms(bool(link.exact), self.rule.both_ways, hides=False, shows=not self.rule.purges)

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
            if made.lacks and doubts(item.chain, own, exact=terms.exact):
                doubted.append((item, own))
            elif made.lacks:
                clear.append(_lack(item, made.bytes))
        asked = self.pool.map(partial(self._lack_of, link_id, terms), doubted)
        return clear + [lack for lack in asked if lack is not None]

    def _lack_of(self, link_id: int, terms: Terms, pair: tuple[Keyed, Chain]) -> Lack | None:
        """By HEAD, too; what can't be told now is for the link to find out."""
        item, there = pair
        try:
            made, _ = compared(
                self.places[link_id], item.key, item.chain, there, terms, unwanted(self.rule, item.chain)
            )
        except LakeMirrorError:
            return _lack(item, item.size)
        return _lack(item, made.bytes) if made.lacks else None

    # --- of keys that somebody named ----------------------------------------------------------------------------------

    def lacking_of(self, keys: Sequence[str], tried: Collection[int] = ()) -> Lacks:
        """What the targets lack of these keys. Raises what the source answers for one of them."""
        self.hidden.clear()
        named = [key for key in keys if is_copied(key)]
        chains = dict(zip(named, self.pool.map(self._chain, named), strict=True))
        unknown = [Lack(key.encode(), -1, "") for key, chain in chains.items() if chain is None]
        items = [Keyed(key, chain) for key, chain in chains.items() if chain]
        wanted = [item for item in items if self.wants(item)]
        lacks: dict[int, list[Lack]] = defaultdict(list)
        for link in self.links:
            found = self.pool.map(partial(self._lack_now, link), wanted)
            lacks[link.pk] = unknown + [lack for lack in found if lack is not None]
        return lacks

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
            return _lack(item, item.size)
        try:
            there = self.places[link.pk].chain(item.key)
        except LakeMirrorError:
            return _lack(item, item.size)
        terms = self._terms_of(link)
        marker = terms.hiding(item.key, item.chain, there, unwanted(self.rule, item.chain))
        if marker is not None:
            self.hidden.setdefault(link.pk, []).append(Hidden(item.key, marker.id, there[-1].size))
        return self._lack_of(link.pk, terms, (item, there))


def _lack(item: Keyed, size: int) -> Lack:
    return Lack(item.key.encode(), size, fingerprint(item.chain))
