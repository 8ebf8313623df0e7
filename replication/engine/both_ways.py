"""One object of a link whose rule leads where others lead back from: the newer of two stays, wherever it lies.

Each copy bears the stamp of what it is a copy of (core/replicating/stamps.py), so what comes back is known, and equal
content is never written. Somebody may write to the target while an object is on its way there: the store is told to
replace only what was judged, where it looks at such conditions. No database.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from adapters.s3.originals import Original
from adapters.s3.store import split_uri
from core.bringing import Side, Unbrought, parts_of
from core.errors import Conflict, Invalid
from core.replicating import stamps
from core.replicating.comparing import Alike, by_heads
from core.replicating.outcomes import Judged, Kind, Outcome
from core.replicating.stamps import STAMP_HEADER, Stamp
from core.replicating.states import Code
from replication.engine.copying import Copying, Head, Wanted, asking


@dataclass(frozen=True)
class Origins:
    """What tells where objects come from: the regions of both places, what signs stamps, and the time."""

    source_region: str
    target_region: str
    key: str
    now: Callable[[], datetime]

    def at_source(self, uri: str, seen: Head) -> Stamp:
        """The stamp of a source's object."""
        return self._of(self.source_region, uri, seen)

    def at_target(self, uri: str, seen: Head) -> Stamp:
        """The stamp of a target's object."""
        return self._of(self.target_region, uri, seen)

    def _of(self, region: str, uri: str, seen: Head) -> Stamp:
        size, in_parts = seen.info.size, bool(parts_of(seen.info.etag))
        told = seen.told.get(STAMP_HEADER, "")
        modified = seen.modified or self.now()
        found = stamps.read(told, key=self.key, uri=uri, size=size, modified=modified, in_parts=in_parts)
        return found or stamps.own_stamp(modified, region, split_uri(uri)[0])


class CopyingBothWays(Copying):
    """Brings objects from one place to another unless that has a newer one. Safe to use from several threads."""

    def __init__(self, origins: Origins, *of: Any, **more: Any) -> None:
        super().__init__(*of, **more)
        self._origins, self._asks_first = origins, True
        self._describes = False  # of two descriptions of one content nobody knows the newer one

    def _send_again(self, wanted: Wanted) -> Outcome:
        """As any other: what is older never replaces what is newer."""
        return self._once(wanted._replace(again=False))

    def _is_equal(self, key: str, seen: Head, there: Head | None) -> bool:
        """Where encryption makes ETags that are no hashes, a copy is known by its stamp alone: times would tell that
        whatever was written later is one."""
        if there is None or (seen.info.etag_is_content and there.info.etag_is_content):
            found = None if there is None else there.info
            return by_heads(seen.info, found, self._target.uri(key), self._proof_key) is Alike.EQUAL
        if seen.info.size != there.info.size:
            return False
        own, their = self._stamps(key, seen, there)
        return seen.info.etag == there.info.etag or (own.origin == their.origin and own.is_own is not their.is_own)

    def _stamps(self, key: str, seen: Head, there: Head) -> tuple[Stamp, Stamp]:
        own = self._origins.at_source(self._source.uri(key), seen)
        return own, self._origins.at_target(self._target.uri(key), there)

    def _replace(self, key: str, seen: Head, there: Head | None) -> Outcome:
        own = self._origins.at_source(self._source.uri(key), seen)
        their = None if there is None else self._origins.at_target(self._target.uri(key), there)
        if their is not None and not stamps.is_newer(own, their):
            return Outcome(Kind.DONE, size=seen.info.size, etag=seen.info.etag)
        wanted = Wanted(key, seen.info.size, seen.info.etag)
        pack = partial(self._stamped, stamps.of_copy(own, their, self._origins.now()), self._target.uri(key), there)
        try:
            return self._bring(wanted, pack=pack)
        except Unbrought as unbrought:
            return self._after(unbrought, key, there)

    def _stamped(self, stamp: Stamp, uri: str, there: Head | None, original: Original) -> Original:
        """A packed object with its stamp, to be written if the target still has what was judged."""
        now, size = self._origins.now(), original.info.size
        told = stamps.written(stamp, now, key=self._origins.key, uri=uri, size=size)
        when = {"if-none-match": "*"} if there is None else {"if-match": f'"{there.info.etag}"'}
        return original.with_stamp(told, when if self._conditional else {})

    def _after(self, unbrought: Unbrought, key: str, there: Head | None) -> Outcome:
        """A refused condition: the target has another object by now, and both are to be judged anew; or its store takes
        no such conditions, and is asked for none any more. Raises Unbrought for anything else."""
        refused = unbrought.side is Side.DESTINATION and isinstance(unbrought.error, (Conflict, Invalid))
        if not refused or not self._conditional or isinstance(unbrought, Judged):
            raise unbrought
        with asking(Side.DESTINATION):
            found = self._target.head(key)
        if _etag(found) == _etag(there):
            self._conditional = False
        return Outcome(Kind.CHANGED, Code.SOURCE_CHANGED, "another object came to the target meanwhile")


def _etag(seen: Head | None) -> str | None:
    return None if seen is None else seen.info.etag
