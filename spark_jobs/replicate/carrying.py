"""What goes with the bytes of a link's objects: tags, locks, headers, a storage class. What was changed of them alone
is carried over without the bytes. No database.

A lock is read back after whatever is written beside it: there are stores that lose it then. So are tags, until a store
has shown that it keeps them: Ceph drops those that an upload in parts begins with, and those of a copy that replaces
metadata.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from adapters.places.describer import Describer
from adapters.places.reader import PlaceReader
from adapters.s3.originals import Original
from core.bringing import Side, Unbrought, parts_of
from core.errors import Archived, Conflict, Denied, Invalid, LakeMirrorError, NoBucket, NotFound, RemoteFailure
from core.replicating.outcomes import Judged, Kind, Outcome
from core.replicating.states import Code
from core.travelling import describing
from core.travelling.describing import NO_LOCK, Description, Lock, LockStep, Tags, Terms
from core.types import ObjectInfo

TRIES_OF_LOCK = 2
"""So often a lock is put right that is not there after a write."""
_UNSAID = frozenset({"InvalidArgument", "InvalidHeader", "NotImplemented"})
"""Words for a header that a store does not take, and for much else."""


class Seen(Protocol):
    """What HEAD told of an object."""

    @property
    def info(self) -> ObjectInfo: ...
    @property
    def told(self) -> Mapping[str, str]: ...


class Heads(Protocol):
    """What asks a place about an object; adapters/places/reader.py."""

    def head(self, key: str, version: str = "") -> Seen | None: ...


class Describes(Protocol):
    """What asks and writes all but bytes; adapters/places/describer.py. `version`: "", the current one."""

    def tags(self, key: str, version: str = "") -> dict[str, str]: ...
    def has_locks(self) -> bool: ...
    def set_tags(self, key: str, tags: Tags, version: str = "") -> None: ...
    def set_retention(self, key: str, lock: Lock, version: str = "", *, shorten: bool = False) -> None: ...
    def set_hold(self, key: str, hold: bool, version: str = "") -> None: ...
    def describe(self, key: str, there: ObjectInfo, headers: Mapping[str, str], tags: Tags) -> bool: ...


@contextmanager
def _at_source() -> Iterator[None]:
    """Errors of a call for an object's tags."""
    try:
        yield
    except Denied as error:
        raise Judged(Side.SOURCE, error, Kind.REFUSED, Code.SOURCE_TAGS_DENIED) from error
    except LakeMirrorError as error:
        raise Unbrought(Side.SOURCE, error) from error


@contextmanager
def _at_target(denied: Code = Code.TARGET_DENIED) -> Iterator[None]:
    """Errors of a call about an object that was at the target a moment ago."""
    try:
        yield
    except Denied as error:
        raise Judged(Side.DESTINATION, error, Kind.REFUSED, denied) from error
    except NoBucket as error:
        raise Unbrought(Side.DESTINATION, error) from error
    except (Conflict, NotFound) as error:  # somebody else has just changed it there
        raise Judged(Side.DESTINATION, error, Kind.RETRY, Code.TARGET_FAILED) from error
    except Invalid as error:
        raise Judged(Side.DESTINATION, error, Kind.FAILED, Code.METADATA_REFUSED) from error
    except LakeMirrorError as error:
        raise Unbrought(Side.DESTINATION, error) from error


# --- looking ----------------------------------------------------------------------------------------------------------


def described(place: Describes, key: str, told: Mapping[str, str], version: str = "") -> Description:
    """An object, or a version of it, with its tags, which are asked for where it has any. Raises what the store
    answers."""
    seen = describing.description_of(told)
    tags = describing.travelling(place.tags(key, version)) if seen.tag_count else {}
    return replace(seen, tags=tags)


def differing(
    own: Description, target: Describes, key: str, there: Seen, now: datetime, version: str = ""
) -> frozenset[str]:
    """In what a target's object is described otherwise, as far as that can be changed: the headers of a version can't.
    Raises what the store answers."""
    found = describing.differences(own, described(target, key, there.told, version), now)
    return found - {"headers"} if version else found


# --- carrying ---------------------------------------------------------------------------------------------------------


class Carrying:
    """What of a link's objects goes to its target beside their bytes. Safe to use from several threads.

    `own_version`, `there_version`: of a version, its ids at the source and at the target; "": of the current object.
    """

    own_version = there_version = ""

    def __init__(
        self, source: Describes, target: Describes, there: Heads, terms: Terms, now: Callable[[], datetime]
    ) -> None:
        self.source, self.target, self.there, self.terms, self.now = source, target, there, terms, now
        self._keeps_tags: set[bool] = set()

    def of_version(self, own: str, there: str = "") -> Carrying:
        """The same for one version, by its id at the source, and at the target where it is there."""
        one = copy.copy(self)
        one.own_version, one.there_version = own, there
        return one

    def wants(self, key: str) -> bool:
        """Whether the source's object has the tags that the rule asks for. Raises Unbrought."""
        if not self.terms.tags:
            return True
        with _at_source():
            return describing.matches(self.terms.tags, self.source.tags(key, self.own_version))

    def own(self, key: str, told: Mapping[str, str]) -> Description:
        """How the source describes an object, with its tags. Raises Unbrought."""
        with _at_source():
            return described(self.source, key, told, self.own_version)

    def parcel(self, key: str) -> Parcel:
        """What one object's bytes are sent with."""
        return Parcel(self, key)

    def carry(self, key: str, seen: Seen, there: Seen) -> Outcome | None:
        """Have the target describe an object that it has as the source has it; None: its bytes have to be sent anew for
        that. Raises Unbrought."""
        own = self.own(key, seen.told)
        done = Outcome(Kind.DONE, etag=seen.info.etag, described=own.digest)
        with _at_target(Code.TARGET_TAGS_DENIED):
            differ = differing(own, self.target, key, there, self.now(), self.there_version)
        if not differ:
            return done
        if "headers" in differ:
            if not self._describe(key, own, there):
                return None
        elif "tags" in differ:
            with _at_target(Code.TARGET_TAGS_DENIED):
                self.target.set_tags(key, own.tags or {}, self.there_version)
        return self.checked(key, own, replace(done, sent=True))

    def _describe(self, key: str, own: Description, there: Seen) -> bool:
        """Whether the store could give it other headers, with its tags and its lock, and left it as it was."""
        kept = {name: value for name, value in there.told.items() if name.startswith(describing.OWN_META)}
        before = describing.description_of(there.told)
        theirs = {name: value for name, value in own.headers.items() if not name.startswith(describing.OWN_META)}
        headers = {**theirs, **kept, **own.lock.at(self.now()).headers, **self.class_of(own, before.storage_class)}
        with _at_target():
            try:
                if not self.target.describe(key, there.info, headers, own.tags or {}):
                    return False
            except Archived:
                return False
        found = self._found(key)
        return (found.info.etag, found.info.size) == (there.info.etag, there.info.size)

    def class_of(self, own: Description, default: str = "") -> dict[str, str]:
        """The header that says in which storage class a copy is to lie."""
        wanted = self.terms.storage_class
        name = own.storage_class if wanted == describing.SAME else wanted or default
        return {describing.STORAGE_CLASS: name} if name else {}

    def arrived(self, key: str, own: Description, done: Outcome) -> Outcome:
        """What came of a write of bytes and all: what is known to be kept is not asked for. Raises Unbrought."""
        in_parts = bool(parts_of(done.there))
        if not own.lock.at(self.now()).protects and (not own.tags or in_parts in self._keeps_tags):
            return done
        found = describing.description_of(self._found(key).told)
        if own.tags and found.tag_count == len(own.tags):
            self._keeps_tags.add(in_parts)
        return self._as_found(key, own, found, done)

    def checked(self, key: str, own: Description, done: Outcome) -> Outcome:
        """What came of a write, once what the target has now says so: its headers, tags, and above all its lock. Raises
        Unbrought."""
        return self._as_found(key, own, describing.description_of(self._found(key).told), done)

    def _as_found(self, key: str, own: Description, found: Description, done: Outcome) -> Outcome:
        if found.tag_count != len(own.tags or {}):
            with _at_target(Code.TARGET_TAGS_DENIED):
                self.target.set_tags(key, own.tags or {}, self.there_version)
            found = describing.description_of(self._found(key).told)
        wanted, kept = describing.compared(own.headers), describing.compared(found.headers)
        if wanted != kept and not self.there_version:
            names = sorted(name for name in wanted.keys() | kept.keys() if wanted.get(name) != kept.get(name))
            text = f"the target's store does not keep these headers as the source has them: {', '.join(names)}"
            return replace(done, kind=Kind.FAILED, code=Code.METADATA_REFUSED, message=text)
        return self._locked(key, own.lock.at(self.now()), found.lock, done)

    def _locked(self, key: str, own: Lock, there: Lock, done: Outcome) -> Outcome:
        """With the lock put right, if it is not the source's."""
        for _ in range(TRIES_OF_LOCK):
            there = there.at(self.now())
            if describing.same_lock(own, there):
                return done
            if (refused := self._lock(key, own, there)) is not None:
                return replace(done, kind=Kind.SKIPPED, code=Code.LOCKED, message=refused)
            there = describing.description_of(self._found(key).told).lock
        if describing.same_lock(own, there.at(self.now())):
            return done
        text = f"the source has {_told(own)}, the target {_told(there)}, although it was set there"
        return replace(done, kind=Kind.FAILED, code=Code.LOCK_LOST, message=text)

    def _lock(self, key: str, own: Lock, there: Lock) -> str | None:
        """Sets what differs; or gives why nobody may. Raises Unbrought."""
        step = describing.retention_step(own, there)
        refused = f"the target keeps it with {_told(there)}, the source with {_told(own)}"
        if step is LockStep.FORBIDDEN:
            return refused
        try:
            with self._locking():
                if step is not LockStep.NONE:
                    self.target.set_retention(key, own, self.there_version, shorten=step is LockStep.SHORTEN)
        except Unbrought as unbrought:
            if step is LockStep.SHORTEN and isinstance(unbrought.error, (Denied, Invalid)):
                return f"{refused}; to change that the key needs s3:BypassGovernanceRetention"
            raise
        if describing.hold_differs(own, there):
            with self._locking():
                self.target.set_hold(key, bool(own.hold), self.there_version)
        return None

    @contextmanager
    def _locking(self) -> Iterator[None]:
        """A store that can't lock anything in this bucket says so in many ways: then it is asked."""
        try:
            with _at_target(Code.TARGET_LOCK_DENIED):
                yield
        except Unbrought as unbrought:
            raise self.of_lock(unbrought) from unbrought

    def of_lock(self, unbrought: Unbrought) -> Unbrought:
        """Why something with a lock was refused, more exactly where the bucket has no locks."""
        if not isinstance(unbrought.error, (Invalid, NotFound)):
            return unbrought
        try:
            if self.target.has_locks():
                return unbrought
        except LakeMirrorError:
            return unbrought
        text = f"{unbrought.error}: the target's bucket has no Object Lock"
        return Judged(Side.DESTINATION, unbrought.error, Kind.REFUSED, Code.TARGET_LOCK_MISSING, text)

    def _found(self, key: str) -> Seen:
        with _at_target():
            seen = self.there.head(key, self.there_version)
            if seen is None:
                raise RemoteFailure(f"the target's store does not have '{key[:200]}' that it had a moment ago")
        return seen


def carrying_of(
    terms: Terms,
    source: PlaceReader,
    target: PlaceReader,
    now: Callable[[], datetime],
    describer_of: Callable[[PlaceReader], Describes] = Describer,
) -> Carrying | None:
    """What goes between two places beside bytes; None: nothing but what a store says of them. `now` tells the time."""
    if terms.plain:
        return None
    return Carrying(describer_of(source), describer_of(target), target, terms, now)


@dataclass
class Parcel:
    """What one object's bytes are sent with; called with the source's object when that is known."""

    carrying: Carrying
    key: str
    own: Description | None = None
    lock: Lock = NO_LOCK
    tags_follow: bool = False
    sent_class: str = ""

    def __call__(self, original: Original) -> Original:
        """The object with the headers that say so. Raises Unbrought."""
        seen = describing.description_of(original.told)
        storage = self.carrying.class_of(seen)
        self.sent_class = storage.get(describing.STORAGE_CLASS, "")
        if not self.carrying.terms.all:
            return original.packed(storage) if storage else original
        self.own = own = self.carrying.own(self.key, original.told)
        self.lock = own.lock.at(self.carrying.now())
        tagging = describing.tagging(own.tags or {})
        self.tags_follow = len(tagging) > describing.LONGEST_TAGGING
        apart = {describing.TAGGING: tagging} if tagging and not self.tags_follow else {}
        return original.packed({**self.lock.headers, **storage}, apart)

    def refused(self, unbrought: Unbrought) -> Unbrought:
        """Why its write was refused, more exactly where that is known of what went with it."""
        error = unbrought.error
        if unbrought.side is Side.SOURCE or not isinstance(error, Invalid) or isinstance(unbrought, Judged):
            return unbrought
        if self.sent_class and error.store_code == "InvalidStorageClass":
            text = f"the storage class {self.sent_class}: {error}"
            return Judged(Side.DESTINATION, error, Kind.FAILED, Code.STORAGE_CLASS_REFUSED, text)
        if self.lock.protects and isinstance(exact := self.carrying.of_lock(unbrought), Judged):
            return exact
        if error.store_code in _UNSAID:
            text = f"{error} (with the storage class {self.sent_class})" if self.sent_class else str(error)
            return Judged(Side.DESTINATION, error, Kind.FAILED, Code.METADATA_REFUSED, text)
        return unbrought

    def arrived(self, done: Outcome, version: str = "") -> Outcome:
        """What came of it in all: tags that no header holds are written now, and a lock is read back; `version`: the id
        that it has at the target. Raises Unbrought."""
        if self.own is None:
            return done
        self.carrying = self.carrying.of_version(self.carrying.own_version, version)
        done = replace(done, described=self.own.digest)
        if self.tags_follow:
            with _at_target(Code.TARGET_TAGS_DENIED):
                self.carrying.target.set_tags(self.key, self.own.tags or {}, version)
            return self.carrying.checked(self.key, self.own, done)
        return self.carrying.arrived(self.key, self.own, done)


def _told(lock: Lock) -> str:
    kept = f"retention ({lock.mode}) until {describing.timestamp(lock.until)}" if lock.until else "no retention"
    return f"{kept} and a legal hold" if lock.hold else kept
