"""One object of a link: is it at the target already, and if not, can it be brought there? No database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from adapters.s3.originals import Pack, telling
from core.bringing import Side, Unbrought, parts_of
from core.errors import Conflict, Invalid
from core.exporting.deadline import Late
from core.replicating.comparing import Alike, by_heads, is_later
from core.replicating.eligible import fits
from core.replicating.outcomes import LATE, Judged, Kind, Outcome, of_error
from core.replicating.states import Code
from core.types import ObjectInfo
from spark_jobs.check.progress import LARGE, lane_of
from spark_jobs.replicate.carrying import Carrying
from spark_jobs.replicate.pins import StaleTarget

log = logging.getLogger("lakemirror.replication")

MOST_CHANGES = 3
"""So often in a row an object may be overwritten while it is read, before its turn is over."""


class Head(Protocol):
    """What HEAD told of an object."""

    @property
    def info(self) -> ObjectInfo: ...
    @property
    def modified(self) -> datetime | None: ...
    @property
    def told(self) -> Mapping[str, str]: ...


class Place(Protocol):
    """What copying needs of a place; adapters/places/reader.py."""

    @property
    def prefix(self) -> str: ...
    def uri(self, key: str) -> str: ...
    def head(self, key: str) -> Head | None: ...
    def answers(self) -> None: ...


class Brings(Protocol):
    """What moves objects; adapters/s3/mover.py."""

    def bring(
        self, source: str, uri: str, size: int, etag: str = "", *, new: bool = False, pack: Pack = ...
    ) -> ObjectInfo: ...


class Wanted(NamedTuple):
    """An object as the ledger has it: what the source had there when it was noted. `absent`: the target had nothing
    there then, and nobody has tried to bring it since; `attempts` that failed. `again`: it is sent even if the target
    has it. Where all versions are copied: `hides`, the marker that may hide what the target shows; `purges`, the
    version of the target that is to go, and `of` which one of the source it is a copy; `shows`: the source's latest is
    written once more where something hides it."""

    key: str
    size: int
    etag: str
    absent: bool = False
    attempts: int = 0
    again: bool = False
    hides: str = ""
    purges: str = ""
    of: str = ""
    shows: bool = False


class Copying:
    """Brings objects from one place to another. Safe to use from several threads.

    `stopped` says that nothing more may begin; `wants`, where not all objects are to be copied, which are, by when they
    were last written; `carrying`, what goes with their bytes: None, headers and metadata. `pinned` raises unless the
    target is the one that was pinned; `sure`: what is there already counts as equal only if the source has it still.
    What is there already, as the source has it, is never written again.
    """

    def __init__(
        self,
        source: Place,
        target: Place,
        mover: Brings,
        proof_key: str,
        stopped: Callable[[], bool] = lambda: False,
        wants: Callable[[datetime | None], bool] | None = None,
        carrying: Carrying | None = None,
        pinned: Callable[[], None] = lambda: None,
        *,
        sure: bool = False,
    ) -> None:
        self._source, self._target, self._mover = source, target, mover
        self._proof_key, self._stopped, self._wants = proof_key, stopped, wants
        self._pinned, self._sure = pinned, sure
        self._carrying, self._source_answers = carrying, False
        self._describes = carrying is not None and carrying.terms.all
        self._asks_first = wants is not None or (carrying is not None and bool(carrying.terms.tags))
        self._conditional = True

    def copy(self, wanted: Wanted) -> Outcome:
        """Have one object at the target as the source has it now. Raises nothing: all that happens is an outcome."""
        if not fits(self._target.prefix, wanted.key):
            return Outcome(Kind.SKIPPED, Code.KEY_TOO_LONG, "the key would have more than 1,024 bytes at the target")
        outcome = LATE
        for _ in range(MOST_CHANGES):
            if self._stopped():
                return LATE
            outcome = self._tried(wanted)
            if outcome.kind is not Kind.CHANGED:
                return outcome
            wanted = Wanted(wanted.key, -1, "", again=wanted.again)
        return outcome

    def _tried(self, wanted: Wanted) -> Outcome:
        try:
            return self._once(wanted)
        except (Late, StaleTarget):
            return LATE
        except Unbrought as unbrought:
            outcome = of_error(unbrought)
            return self._gone_for_sure() if outcome.kind is Kind.GONE else outcome
        except Exception:
            log.exception("an object could not be copied for a reason that is our own fault")
            return Outcome(Kind.RETRY, Code.INTERNAL, "internal error: see the log of the worker")

    def _gone_for_sure(self) -> Outcome:
        try:
            return self._gone()
        except Unbrought as unbrought:
            return of_error(unbrought)

    def _gone(self) -> Outcome:
        """The source has it no more. The answer to HEAD does not say whether the bucket is there: once, that is asked.
        Raises Unbrought."""
        if not self._source_answers:
            with telling(Side.SOURCE):
                self._source.answers()
            self._source_answers = True
        return Outcome(Kind.GONE)

    def _once(self, wanted: Wanted) -> Outcome:
        """`wanted` without a size or an ETag: only the source knows what it has."""
        if wanted.again:
            return self._send_again(wanted)
        if wanted.absent and (outcome := self._new(wanted)) is not None:
            return outcome
        with telling(Side.DESTINATION):
            there = self._target.head(wanted.key)
        found = there.info if there is not None else None
        if self._asks_first or not (wanted.etag and wanted.size >= 0):
            return self._as_it_is_now(wanted.key, there)
        if found is not None and found.size == wanted.size:
            if found.etag == wanted.etag and not self._describes and not self._sure:
                return Outcome(Kind.DONE, size=found.size, etag=wanted.etag, there=found.etag)
            return self._as_it_is_now(wanted.key, there)
        return self._bring(wanted)

    def _as_it_is_now(self, key: str, there: Head | None) -> Outcome:
        with telling(Side.SOURCE):
            seen = self._source.head(key)
        if seen is None:
            return replace(self._gone(), there=there.info.etag if there is not None else "")
        own = seen.info
        if self._wants is not None and not self._wants(seen.modified):
            return Outcome(Kind.GONE)
        if self._carrying is not None and not self._carrying.wants(key):
            return Outcome(Kind.GONE)
        if self._is_equal(key, seen, there):
            found = there.info if there is not None else None
            told = {"there": _proven(own, found), "source": self._mark(seen)}
            done: Outcome | None = Outcome(Kind.DONE, size=own.size, etag=own.etag, **told)
            if self._describes and self._carrying is not None and there is not None:
                self._pinned()
                done = self._carrying.carry(key, seen, there)
            if done is not None:
                return replace(done, there=_proven(own, found))
        return self._replace(key, seen, there)

    def _mark(self, seen: Head) -> str:
        """What tells a source's object from what is written there later, where somebody wants to know."""
        return ""

    def _is_equal(self, key: str, seen: Head, there: Head | None) -> bool:
        """Whether the target has the source's object."""
        found, at = (None, None) if there is None else (there.info, there.modified)
        later = is_later(at, seen.modified)
        return by_heads(seen.info, found, self._target.uri(key), self._proof_key, later=later) is Alike.EQUAL

    def _replace(self, key: str, seen: Head, there: Head | None) -> Outcome:
        """Have the source's object at the target, which has another one there, or none."""
        return self._bring(Wanted(key, seen.info.size, seen.info.etag))

    def _send_again(self, wanted: Wanted) -> Outcome:
        """Whatever the target has, and be it the same."""
        if not self._asks_first and wanted.etag and wanted.size >= 0:
            return self._bring(wanted)
        return self._as_it_is_now(wanted.key, None)

    def _new(self, wanted: Wanted) -> Outcome | None:
        """Bring a small object to where there was nothing, without asking first: the store is told to write it only if
        that is still so. None where the target has to be asked after all."""
        whole = wanted.size >= 0 and lane_of(wanted.size) != LARGE and wanted.etag and not parts_of(wanted.etag)
        if self._asks_first or not whole or not self._conditional:
            return None
        try:
            return self._bring(wanted, new=True)
        except Unbrought as unbrought:
            if unbrought.side is not Side.DESTINATION or not isinstance(unbrought.error, (Conflict, Invalid)):
                raise
            if isinstance(unbrought, Judged):  # whatever the condition, it is known what was refused
                raise
            if isinstance(unbrought.error, Invalid):
                self._conditional = False  # as a store answers that knows no such condition
            return None

    def _bring(self, wanted: Wanted, *, new: bool = False, pack: Pack | None = None) -> Outcome:
        """`pack`: what the object is sent with beside what is carried."""
        more: dict[str, Any] = {"new": True} if new else {}
        if self._carrying is None:
            return self._sent(wanted, more if pack is None else {**more, "pack": pack})
        parcel = self._carrying.parcel(wanted.key)
        both: Pack = parcel if pack is None else lambda original: pack(parcel(original))
        try:
            outcome = self._sent(wanted, {**more, "pack": both})
        except Unbrought as unbrought:
            raise parcel.refused(unbrought) from unbrought
        return replace(parcel.arrived(outcome), there=outcome.there) if outcome.kind is Kind.DONE else outcome

    def _sent(self, wanted: Wanted, more: Mapping[str, Any]) -> Outcome:
        uri = self._target.uri(wanted.key)
        self._pinned()
        brought = self._mover.bring(self._source.uri(wanted.key), uri, wanted.size, wanted.etag, **more)
        done = Outcome(Kind.DONE, size=brought.size, etag=wanted.etag, sent=True, there=brought.etag)
        if brought.etag == wanted.etag and brought.size == wanted.size:
            return done
        with telling(Side.SOURCE):
            seen = self._source.head(wanted.key)
        if seen is None:
            return replace(self._gone(), sent=True, there=brought.etag)
        if seen.info.etag != wanted.etag:
            return Outcome(Kind.CHANGED, Code.SOURCE_CHANGED, "the source has another object there by now")
        if by_heads(seen.info, brought, uri, self._proof_key) is Alike.EQUAL:
            return done
        text = f"copied, but the target gave it the ETag {brought.etag}, which does not tell it to be {wanted.etag}"
        return Outcome(Kind.FAILED, Code.PARTS_DIFFER, text, brought.size, wanted.etag, sent=True, there=brought.etag)


def _proven(own: ObjectInfo, found: ObjectInfo | None) -> str:
    """The ETag of what was found equal, if more than its size says so: the same ETag, or our proof."""
    if found is None:
        return ""
    return found.etag if found.etag == own.etag or (found.etag_is_content and own.etag_is_content) else ""
