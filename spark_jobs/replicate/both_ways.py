"""One object of a link whose rule leads where others lead back from: the newer of two stays, wherever it lies.

Each copy bears the stamp of what it is a copy of (core/replicating/stamps.py), so what comes back is known, and equal
content is never written. Somebody may write to the target while an object is on its way there: the store is told to
replace only what was judged, where it looks at such conditions. No database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from adapters.s3.originals import Original, telling
from adapters.s3.store import split_uri
from core.bringing import Side, Unbrought, parts_of
from core.errors import Conflict, Invalid, LakeMirrorError, NotFound
from core.replicating import stamps
from core.replicating.both_ways.losers import Loser
from core.replicating.both_ways.tombstones import Have, Since, Tombstone, mark_of
from core.replicating.both_ways.upstream import Way, newest
from core.replicating.comparing import Alike, by_heads, is_later
from core.replicating.outcomes import Judged, Kind, Outcome
from core.replicating.stamps import STAMP_HEADER, Stamp
from core.replicating.states import Code
from spark_jobs.replicate.copying import Copying, Head, Place, Wanted

_NOT_KNOWN = frozenset({"NotImplemented", "501"})
"""What a store says that knows no conditions at all."""
_OF_CONDITIONS = _NOT_KNOWN | {"InvalidArgument", "InvalidRequest", "400", ""}
_NOTHING_THERE = "NoSuchKey"
"""What a store says that was told to replace an object, and has none any more."""
_BUSY = frozenset({"ConditionalRequestConflict", "OperationAborted", "409"})
"""What a store says while somebody else writes the same object."""
_UNTOLD = "a place that leads to the source does not tell how new the source's object is: {}"


class Bars(Protocol):
    """What was deleted at a target, and must not be brought back."""

    def is_buried(self, key: str) -> bool: ...
    def is_barred(self, key: str, source: Have) -> bool: ...


def have(stamp: Stamp, seen: Head) -> Have:
    """An object as HEAD told of it."""
    info = seen.info
    return Have(stamp, info.size, info.etag, mark_of(seen.modified, info.etag), info.etag_is_content)


@dataclass(frozen=True)
class Origins:
    """What tells where objects come from: the regions of both places, what signs stamps, and the time. `upstream`: what
    asks places that lead to the source, where that is needed."""

    source_region: str
    target_region: str
    key: str
    now: Callable[[], datetime]
    upstream: Upstream | None = None

    def at_source(self, uri: str, seen: Head) -> Stamp:
        """The stamp of a source's object."""
        return self._of(self.source_region, uri, seen)

    def at_target(self, uri: str, seen: Head) -> Stamp:
        """The stamp of a target's object."""
        return self._of(self.target_region, uri, seen)

    def is_equal(self, source: str, uri: str, seen: Head, there: Head, proof_key: str) -> bool:
        """Whether the object at a target's URI is that of the source's.

        Where encryption makes ETags that are no hashes, a copy is known by its stamp alone: times would tell that
        whatever was written later is one. Of a copy that is not younger than the source's object nobody knows which
        one of that second it is of.
        """
        if seen.info.etag_is_content and there.info.etag_is_content:
            return by_heads(seen.info, there.info, uri, proof_key) is Alike.EQUAL
        if seen.info.size != there.info.size or seen.info.etag == there.info.etag:
            return seen.info.size == there.info.size
        own, their = self.at_source(source, seen), self.at_target(uri, there)
        if own.origin != their.origin or own.is_own is their.is_own:
            return False
        return their.is_own or is_later(there.modified, seen.modified)

    def newest(self, source: str, seen: Head) -> Stamp:
        """The stamp of a source's object, or that of the same content at a place that leads there, if that is newer.
        Raises what such a place answers."""
        own = self.at_source(source, seen)
        return own if self.upstream is None else self.upstream.newest(source, seen, own)

    def replacing(self, source: str, seen: Head, their: Stamp) -> Stamp | None:
        """The stamp by which the source's object is newer than one with that stamp; None: it is not. Raises what a
        place that leads to the source answers."""
        own = self.at_source(source, seen)
        own = own if stamps.is_newer(own, their) else self.newest(source, seen)
        return own if stamps.is_newer(own, their) else None

    def is_newer(self, source: str, uri: str, seen: Head, there: Head) -> bool:
        """Whether the source's object replaces that at a target's URI. Raises what a place that leads to the source
        answers."""
        return self.replacing(source, seen, self.at_target(uri, there)) is not None

    def _of(self, region: str, uri: str, seen: Head) -> Stamp:
        size, in_parts = seen.info.size, bool(parts_of(seen.info.etag))
        told = seen.told.get(STAMP_HEADER, "")
        modified = seen.modified or self.now()
        found = stamps.read(told, key=self.key, uri=uri, size=size, modified=modified, in_parts=in_parts)
        return found or stamps.own_stamp(modified, region, split_uri(uri)[0])


@dataclass(frozen=True)
class Upstream:
    """What asks the places that lead to a link's source, by these ways (core/replicating/both_ways/upstream.py), at
    least one. `place` opens one by its region and URI; `key` signs stamps, `proof_key` proofs of parts. Safe to use
    from several threads."""

    ways: Sequence[Way]
    place: Callable[[str, str], Place]
    key: str
    proof_key: str
    now: Callable[[], datetime]

    def newest(self, uri: str, seen: Head, own: Stamp) -> Stamp:
        """The stamp of the source's object at a URI, or a newer one of the same content. Raises what places answer."""
        at = self.ways[0].target.store, uri
        heads: dict[tuple[str, str], Head] = {at: seen}

        def ask(way: Way, source: str, target: str) -> Stamp | None:
            place, origins = self.place(way.source.region, way.source.uri), self._origins(way)
            found = place.head(source.removeprefix(f"{way.source.uri}/"))
            if found is None or found.modified is None:
                return None  # nobody could say when it was written
            if not origins.is_equal(source, target, found, heads[way.target.store, target], self.proof_key):
                return None
            heads[way.source.store, source] = found
            return origins.at_source(source, found)

        return newest(at, own, self.ways, ask)

    def _origins(self, way: Way) -> Origins:
        return Origins(way.source.region, way.target.region, self.key, self.now)


class CopyingBothWays(Copying):
    """Brings objects from one place to another unless that has a newer one. Safe to use from several threads."""

    def __init__(self, origins: Origins, bars: Bars | None, *of: Any, **more: Any) -> None:
        """`bars`: what was deleted at the target is not brought back; None: it is."""
        super().__init__(*of, **more)
        self._origins, self._bars, self._asks_first = origins, bars, True
        self._describes = False  # of two descriptions of one content nobody knows the newer one

    def _send_again(self, wanted: Wanted) -> Outcome:
        """As any other: what is older never replaces what is newer."""
        return self._once(wanted._replace(again=False))

    def _mark(self, seen: Head) -> str:
        return mark_of(seen.modified, seen.info.etag)

    def _is_equal(self, key: str, seen: Head, there: Head | None) -> bool:
        if there is None:
            return False
        return self._origins.is_equal(self._source.uri(key), self._target.uri(key), seen, there, self._proof_key)

    def _replace(self, key: str, seen: Head, there: Head | None) -> Outcome:
        info, own = seen.info, self._origins.at_source(self._source.uri(key), seen)
        bears = self._bears(key, own, seen, there)
        if bears is None:
            return Outcome(Kind.DONE, size=info.size, etag=info.etag)
        done = self._written(key, bears, seen, there)
        lost = self._loser(key, there) if done.sent and there is not None and not _keeps_versions(there) else ""
        newer = Tombstone(bears, info.size, info.etag, Since.OVER) if bears.origin != own.origin else None
        return replace(done, source=self._mark(seen), replaced=lost, brought=newer)

    def _bears(self, key: str, own: Stamp, seen: Head, there: Head | None) -> Stamp | None:
        """The stamp by which the target gets the source's object, which has its own there; None: it does not."""
        source = self._source.uri(key)
        with _untold():
            if there is not None:
                return self._origins.replacing(source, seen, self._origins.at_target(self._target.uri(key), there))
            buried = self._bars is not None and self._bars.is_buried(key)
            newest = self._origins.newest(source, seen) if buried else own
        return None if self._is_barred(key, have(own, seen)) else newest

    def _loser(self, key: str, there: Head) -> str:
        """What somebody wrote at the target, and was replaced; "" for a copy of ours: that is elsewhere, too."""
        stamp = self._origins.at_target(self._target.uri(key), there)
        return Loser(stamp.at, there.info.size, there.info.etag).told() if stamp.is_own else ""

    def _is_barred(self, key: str, source: Have) -> bool:
        if self._bars is None:
            return False
        try:
            barred = self._bars.is_barred(key, source)
        except Judged:
            self._pinned()
            raise
        if barred:
            self._pinned()  # of another bucket than the one that was pinned nothing is known
        return barred

    def _written(self, key: str, bears: Stamp, seen: Head, there: Head | None) -> Outcome:
        uri = self._target.uri(key)
        their = None if there is None else self._origins.at_target(uri, there)
        wanted = Wanted(key, seen.info.size, seen.info.etag)
        pack = partial(self._stamped, stamps.of_copy(bears, their, self._origins.now()), uri)
        if not self._conditional:
            return self._bring(wanted, pack=partial(pack, {}))
        when = {"if-none-match": "*"} if there is None else {"if-match": f'"{there.info.etag}"'}
        try:
            return self._bring(wanted, pack=partial(pack, when))
        except Unbrought as unbrought:
            if (changed := self._after(unbrought, key, there)) is not None:
                return changed
            done = self._bring(wanted, pack=partial(pack, {}))
            self._conditional = unbrought.error.store_code not in _NOT_KNOWN
            return done

    def _stamped(self, stamp: Stamp, uri: str, when: Mapping[str, str], original: Original) -> Original:
        """A packed object with its stamp, to be written under a condition."""
        now, size = self._origins.now(), original.info.size
        told = stamps.written(stamp, now, key=self._origins.key, uri=uri, size=size)
        return original.with_stamp(told, when)

    def _after(self, unbrought: Unbrought, key: str, there: Head | None) -> Outcome | None:
        """What a refusal means that may be of the condition. The target has another object by now, and both are to be
        judged anew; or None: its store takes no such condition for this one. Raises Unbrought for anything else: what
        is refused of one object must not leave the others without a condition."""
        error = unbrought.error
        if unbrought.side is not Side.DESTINATION or isinstance(unbrought, Judged):
            raise unbrought
        if isinstance(error, Conflict) and error.store_code in _BUSY:
            raise Judged(Side.DESTINATION, error, Kind.RETRY, Code.TARGET_FAILED) from unbrought
        gone = isinstance(error, NotFound) and error.store_code == _NOTHING_THERE
        of_condition = isinstance(error, Conflict) or (
            isinstance(error, Invalid) and error.store_code in _OF_CONDITIONS
        )
        if not gone and not of_condition:
            raise unbrought
        with telling(Side.DESTINATION):
            found = self._target.head(key)
        if _etag(found) == _etag(there):
            if gone:
                raise Judged(Side.DESTINATION, error, Kind.RETRY, Code.TARGET_FAILED) from unbrought
            return None
        return Outcome(Kind.CHANGED, Code.SOURCE_CHANGED, "another object came to the target meanwhile")


@contextmanager
def _untold() -> Iterator[None]:
    """A place that leads to the source may not answer: then nobody can tell how new the object is, and that is no fault
    of the link's."""
    try:
        yield
    except LakeMirrorError as error:
        text = _UNTOLD.format(error)
        raise Judged(Side.SOURCE, error, Kind.RETRY, Code.SOURCE_FAILED, text) from error


def _keeps_versions(there: Head) -> bool:
    """Whether what was there is still to be had: its bucket keeps versions."""
    return there.told.get("x-amz-version-id", "") not in ("", "null")


def _etag(seen: Head | None) -> str | None:
    return None if seen is None else seen.info.etag
