"""What the targets of a rule have of keys that the source has: what lacks is noted for each link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import compress
from typing import Any, NamedTuple, Protocol

from adapters.places.reader import time_of
from core.errors import LakeMirrorError, NotFound, Throttled, Unreachable
from core.replicating.comparing import Alike, by_heads, by_listing, is_later
from core.replicating.eligible import is_copied
from core.replicating.merging import Listed, Read, Window, windows
from core.replicating.states import Health
from core.travelling.describing import Description, Terms, description_of, matches
from spark_jobs.replicate.both_ways import Origins, Upstream
from spark_jobs.replicate.building import Signs
from spark_jobs.replicate.carrying import described, differing
from spark_jobs.replicate.lacking import Hidden, Lack

THREADS = 16
Lacks = Mapping[int, Sequence[Lack]]
"""What lacks, by the link's key."""


class Named(NamedTuple):
    """An object of the source that was asked for by its key. `own`: how the source describes it; None: nobody looked,
    or it can't be asked, and its links find out why."""

    item: Listed
    own: Description | None = None


class Asking(NamedTuple):
    """A key, and how many requests it takes to ask one place how it describes what it has of it."""

    key: str
    requests: int = 1


class LookedRule(Protocol):
    """What is asked of a rule: its row, or what tasks are told of it."""

    @property
    def region(self) -> str: ...
    @property
    def uri(self) -> str: ...
    @property
    def existing(self) -> bool: ...
    @property
    def new(self) -> bool: ...
    @property
    def both_ways(self) -> bool: ...
    @property
    def markers(self) -> bool: ...
    @property
    def purges(self) -> bool: ...
    @property
    def terms(self) -> Terms: ...
    def wants(self, modified: datetime | None) -> bool: ...


class LookedLink(Protocol):
    """The same of a link."""

    @property
    def pk(self) -> int: ...
    @property
    def region(self) -> str: ...
    @property
    def uri(self) -> str: ...
    @property
    def health(self) -> str: ...
    @property
    def exact(self) -> bool | None: ...


class Opens(Protocol):
    """What a process knows of places: how to reach them, and what signs what they have of ours. Raises Invalid for a
    region that is not configured."""

    def place(self, region: str, uri: str, *, versions: bool) -> Any: ...
    def describer_of(self, place: Any) -> Any: ...
    def upstream(self, rule: Any, link: Any) -> Upstream | None: ...
    @property
    def signs(self) -> Signs: ...
    def now(self) -> datetime: ...


@dataclass
class Looker:
    """Reads the source of a rule and its targets, for one round. Close it."""

    rule: LookedRule
    links: Sequence[LookedLink]
    opens: Opens
    source: Any = None
    places: dict[int, Any] = field(default_factory=dict)
    """Of the links that can be asked."""
    dated: bool = False
    """Somebody wants to know when objects were last written, whatever the rule goes by."""
    hidden: dict[int, list[Hidden]] = field(default_factory=dict)
    """What targets show of the keys that were named last, by link, and the source hides."""

    def __post_init__(self) -> None:
        self.source = self.place(self.rule.region, self.rule.uri)
        self.pool = ThreadPoolExecutor(THREADS)
        self._signs = self.opens.signs
        self._proof_key = self._signs.proofs
        self._terms, self._describes = self.rule.terms, self.opens.describer_of(self.source)
        self._describers: dict[int, Any] = {}
        self.origins = {link.pk: self._origins_of(link) for link in self.links} if self.rule.both_ways else {}
        for link in self.links:
            if link.health != Health.DOWN:
                self._open(link)

    def _origins_of(self, link: LookedLink) -> Origins:
        upstream = self.opens.upstream(self.rule, link)
        return Origins(self.rule.region, link.region, self._signs.stamps, self.opens.now, upstream)

    def _open(self, link: LookedLink) -> None:
        try:
            self.places[link.pk] = place = self.place(link.region, link.uri)
            self._describers[link.pk] = self.opens.describer_of(place)
        except LakeMirrorError:
            return  # its region is not configured: its own duty tells

    def place(self, region: str, uri: str) -> Any:
        """What reads a place. Raises Invalid for a region that is not configured."""
        return self.opens.place(region, uri, versions=False)

    def close(self) -> None:
        """Let the threads go."""
        self.pool.shutdown(cancel_futures=True)

    @property
    def unasked(self) -> set[int]:
        """Links of which nobody knows what their targets have."""
        return {link.pk for link in self.links} - self.places.keys()

    def wants(self, item: Listed) -> bool:
        """Whether the rule copies such an object of the source."""
        if not is_copied(item.key):
            return False
        return (self.rule.existing and self.rule.new) or self.rule.wants(time_of(item.modified))

    # --- of a window --------------------------------------------------------------------------------------------------

    def source_read(self) -> Read:
        """What lists the source; with times where the rule goes by these, or tells by them what was deleted."""
        by_times = not (self.rule.existing and self.rule.new) or (self.rule.markers and self.rule.both_ways)
        return partial(self.source.listing, dated=self.dated or by_times)

    def target_reads(self) -> dict[int, Read]:
        """What lists the target of each link that can be asked."""
        return {pk: place.listing for pk, place in self.places.items()}

    def windows(
        self, low: str, high: str | None, but: Collection[int] = (), ahead: Callable[[Read], Read] = lambda read: read
    ) -> Iterator[Window]:
        """What the places have of the keys after one, up to another; `but` of these links. Raises what the source
        answers."""
        reads = {pk: ahead(read) for pk, read in self.target_reads().items() if pk not in but}
        each = self.pool.map if len(reads) > 1 else map
        yield from windows(ahead(self.source_read()), reads, low, high, each, tail=self.rule.markers)

    def lacking(self, window: Window, items: Sequence[Listed], fresh: Collection[int] = ()) -> Lacks:
        """What the targets lack of these objects of a window, by link: where the listings leave it open, by HEAD of
        both. `fresh`: links that had nothing open there before the targets were listed."""
        lacks: dict[int, list[Lack]] = {}
        for link_id, there in window.there.items():
            judged = [(item, by_listing(item.size, item.etag, there.get(item.key))) for item in items]
            doubted = [Named(item) for item, alike in judged if alike is Alike.DOUBT]
            lacking = self._lacking_at(link_id, doubted) if doubted else {}
            new = link_id in fresh
            lacks[link_id] = [
                lacking.get(item) or _lack(item, absent=new and item.key not in there)
                for item, alike in judged
                if alike is Alike.DIFFERENT or item in lacking
            ]
            if self.rule.both_ways:
                lacks[link_id] = self._without_newer(link_id, lacks[link_id], there)
        return self.tagged(lacks)

    def _without_newer(self, link_id: int, lacks: Sequence[Lack], there: Collection[str]) -> list[Lack]:
        """What lacks, but for keys of which the target has a newer object, which stays."""
        differ = [lack.key for lack in lacks if lack.key.decode() in there]
        stays = set(compress(differ, self.pool.map(partial(self._stays, link_id), differ)))
        return [lack for lack in lacks if lack.key not in stays]

    def _stays(self, link_id: int, key: bytes) -> bool:
        """By HEAD of both; what can't be told now is for the link to find out."""
        name = key.decode()
        try:
            source, there = self.source.head(name), self.places[link_id].head(name)
            return bool(source and there) and not self._is_older(link_id, name, source, there)
        except LakeMirrorError:
            return False

    def tagged(self, lacks: Mapping[int, Sequence[Lack]]) -> Lacks:
        """What lacks of objects that have the tags that the rule asks for. They are asked only here."""
        if not self._terms.tags:
            return lacks
        keys = sorted({lack.key for some in lacks.values() for lack in some})
        tagged = {key for key, has in zip(keys, self.pool.map(self._has_tags, keys), strict=True) if has}
        return {link_id: [lack for lack in some if lack.key in tagged] for link_id, some in lacks.items()}

    def _has_tags(self, key: bytes) -> bool:
        try:
            return matches(self._terms.tags, self._describes.tags(key.decode()))
        except NotFound:
            return False
        except LakeMirrorError:
            return True  # its links find out why it can't be asked

    def _lacking_at(self, link_id: int, named: Sequence[Named], *, new: bool = False) -> dict[Listed, Lack]:
        found = self.pool.map(partial(self._lacks, link_id, new), named)
        return {one.item: lack for one, lack in zip(named, found, strict=True) if lack is not None}

    def _lacks(self, link_id: int, new: bool, named: Named) -> Lack | None:
        """By HEAD of both; what can't be told now is for the link to find out. `new`: it was never tried."""
        item, place = named.item, self.places[link_id]
        if item.size < 0:
            return _lack(item)
        try:
            there = place.head(item.key)
            alike = by_listing(item.size, item.etag, (there.info.size, there.info.etag) if there else None)
            if alike is Alike.DIFFERENT:
                return _lack(item, named.own, absent=new and there is None)
            if alike is Alike.DOUBT:
                source = self.source.head(item.key)
                if source is None:
                    return None
                if self.rule.both_ways:
                    return _lack(item) if self._is_older(link_id, item.key, source, there) else None
                later = is_later(there.modified, source.modified)
                alike = by_heads(source.info, there.info, place.uri(item.key), self._proof_key, later=later)
            equal = alike is Alike.EQUAL and not self._described_otherwise(link_id, named, there)
        except LakeMirrorError:
            return _lack(item, named.own)
        return None if equal else _lack(item, named.own)

    def _is_older(self, link_id: int, key: str, source: Any, there: Any) -> bool:
        """Whether a target's object is another one, and older, where the newer one stays."""
        origins, uris = self.origins[link_id], (self.source.uri(key), self.places[link_id].uri(key))
        equal = origins.is_equal(*uris, source, there, self._proof_key)
        return not equal and origins.is_newer(*uris, source, there)

    def _described_otherwise(self, link_id: int, named: Named, there: Any) -> bool:
        """Whether a target's object has other headers, tags or another lock. Raises what its store answers."""
        if named.own is None or not self._terms.all or self.rule.both_ways:
            return False
        return bool(differing(named.own, self._describers[link_id], named.item.key, there, self.opens.now()))

    # --- of keys that somebody named ----------------------------------------------------------------------------------

    def named_after(self, after: str) -> tuple[list[Asking], bool]:
        """Some keys of the source after one, and whether there are more behind them. Raises what the source answers."""
        page = self.source.listing(after)
        return [Asking(item.key) for item in page.items], page.more

    def lacking_of(
        self, keys: Sequence[str], tried: Collection[int] = (), beside: Collection[str] | None = None
    ) -> Lacks:
        """What the targets lack of these keys, or describe otherwise. `tried`: links where one of them was open before;
        `beside`: where all versions are copied, the keys of which tags or locks may have changed; None: of any. Raises
        what the source answers for one of them."""
        found = [one for one in self.pool.map(self._named, keys) if one is not None and self.wants(one.item)]
        lacks: dict[int, list[Lack]] = defaultdict(list)
        for link in self.links:
            if link.pk in self.places:
                lacks[link.pk] = list(self._lacking_at(link.pk, found, new=link.pk not in tried).values())
            else:
                lacks[link.pk] = [_lack(one.item, one.own) for one in found]
        return self.tagged(lacks)

    def _named(self, key: str) -> Named | None:
        """An object of the source, with its item as a listing would have it; None where there is none. One that can't
        be asked about has no ETag here. Raises where nobody answers, for then nothing can be asked."""
        if not is_copied(key):
            return None
        try:
            seen = self.source.head(key)
            if seen is None:
                return None
            own = self._own(key, seen.told)
        except (Throttled, Unreachable):
            raise
        except LakeMirrorError:
            return Named(Listed(key, -1, ""))
        modified = seen.modified.isoformat() if seen.modified is not None else ""
        return Named(Listed(key, seen.info.size, seen.info.etag, modified), own)

    def _own(self, key: str, told: Mapping[str, str]) -> Description:
        """How the source describes an object, with its tags where they travel. Raises what its store answers."""
        return described(self._describes, key, told) if self._terms.all else description_of(told)


def _lack(item: Listed, own: Description | None = None, *, absent: bool = False) -> Lack:
    return Lack(item.key.encode(), item.size, item.etag, absent, own.digest if own is not None else "")
