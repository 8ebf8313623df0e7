"""Deletions between places that copy to one another: which ones are followed, and what is not copied back. Pure.

A place that lacks a key may never have had it, or somebody has deleted it there. A link tells the two apart by what it
has copied, or has seen to be equal: what was at both ends, and is gone at one of them while the other still has the
very same object, has been deleted there. So no clock is asked whether a deletion came before a write: whatever somebody
has written since is another object, and stays.

A tombstone says of a place, not of a link, what was deleted there: by whom, directly or by one of our links, does not
matter. It has the stamp of what was deleted (stamps.py). Whatever is that object, or an older one, is not copied to the
place, and is deleted where the links lead from it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from core.bringing import parts_of
from core.replicating.stamps import Stamp, is_newer


class Since(StrEnum):
    """What is known of a place since a deletion. Found: something was seen to be gone. Done: a link of ours deleted
    just this, or was about to. Over: the place has had an object again. Pardoned: somebody wants it back, or has
    written it anew elsewhere."""

    FOUND = "found"
    DONE = "done"
    OVER = "over"
    PARDONED = "pardoned"


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What was deleted at a place, or will be if that lacks it: its stamp, size and ETag."""

    stamp: Stamp
    size: int
    etag: str
    since: Since = Since.FOUND


@dataclass(frozen=True, slots=True)
class Have:
    """An object at a place, as HEAD tells of it. `mark`: what tells it from whatever is written there later; "":
    nobody knows. `hashed`: its ETag is a hash of its content."""

    stamp: Stamp
    size: int
    etag: str
    mark: str = ""
    hashed: bool = True

    @property
    def is_copy(self) -> bool:
        """Whether one of our links wrote it."""
        return not self.stamp.is_own


class Act(StrEnum):
    """What is to be done with a key at a link's target."""

    NOTHING = "nothing"
    COPY = "copy"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Step:
    """What follows for one key: what is to be done, and what each end's tombstone is from now on."""

    act: Act
    at_source: Tombstone | None = None
    at_target: Tombstone | None = None


def mark_of(modified: datetime | None, etag: str) -> str:
    """What tells an object at its place from whatever is written there later: when it was last written, in whole
    seconds, for HEAD tells no more, and its ETag."""
    return f"{int(modified.timestamp())}:{etag}" if modified is not None and etag else ""


def covers(tombstone: Tombstone | None, have: Have) -> bool:
    """Whether an object is what was deleted, or an older one. Of two that were written in one second at one place
    nobody knows the older one: there only the same content is."""
    if tombstone is None or tombstone.since is Since.PARDONED:
        return False
    if have.stamp.origin != tombstone.stamp.origin:
        return is_newer(tombstone.stamp, have.stamp)
    if have.size != tombstone.size or have.etag == tombstone.etag:
        return have.size == tombstone.size
    return have.is_copy and (not have.hashed or parts_of(have.etag) != parts_of(tombstone.etag))


def is_barred(
    source: Have, tombstone: Tombstone | None, known: str | None, others: Collection[tuple[int, str]] = ()
) -> bool:
    """Whether a source's object is not to be copied to a place that lacks it. `known` as in `step`; `others`: size and
    ETag of what other links have brought there, or have seen there: if it was this, they will find that it is gone."""
    if tombstone is not None and tombstone.since in (Since.DONE, Since.PARDONED):
        return covers(tombstone, source)
    if covers(tombstone, source):
        return True
    return bool(known and known == source.mark) or (source.size, source.etag) in others


def later(one: Tombstone | None, other: Tombstone | None) -> Tombstone | None:
    """Of two tombstones of a key at a place that of the newer object."""
    if one is None or other is None:
        return one or other
    return other if is_newer(replace(other.stamp, seen=None), replace(one.stamp, seen=None)) else one


def step(
    known: str | None,
    own: str | None,
    source: Have | None,
    target: Have | None,
    at_source: Tombstone | None,
    at_target: Tombstone | None,
) -> Step:
    """What a link does with a key that one of its ends lacks. `known`: the mark of the source's object that the link
    has copied, or has seen at both ends; `own`: the ETag that it had at the target then; None: there was none."""
    if source is not None and target is not None:
        return Step(Act.NOTHING, _over(at_source), _over(at_target))
    if source is not None:
        return _target_lacks(known, source, _over(at_source), at_target)
    if target is not None:
        return _source_lacks(own, target, at_source, _over(at_target))
    passed_on = None if at_source is None or at_source.since is Since.PARDONED else at_source
    if passed_on is None or (at_target is not None and at_target.since is Since.PARDONED):
        return Step(Act.NOTHING, at_source, at_target)
    found = later(at_target, replace(passed_on, since=Since.FOUND))
    return Step(Act.NOTHING, at_source, found)


def unless_newer(told: Step, source: Have, newest: Stamp) -> Step:
    """What follows for a key that the target lacks, and is not to be brought there, where the same content was written
    at another place later, as the `newest` stamp of it says (upstream.py): if that is newer than what was deleted it is
    none of that, and comes back."""
    again = replace(source, stamp=newest)
    if newest == source.stamp or told.at_target is None or covers(told.at_target, again):
        return told
    return replace(told, act=Act.COPY, at_target=replace(told.at_target, since=Since.PARDONED))


def _target_lacks(known: str | None, source: Have, at_source: Tombstone | None, at_target: Tombstone | None) -> Step:
    explained = at_target is not None and at_target.since in (Since.DONE, Since.PARDONED)
    if known and known == source.mark and not explained:
        at_target = later(Tombstone(source.stamp, source.size, source.etag), at_target)
        if at_target is not None and at_target.since is Since.OVER:
            at_target = replace(at_target, since=Since.FOUND)
    act = Act.NOTHING if covers(at_target, source) else Act.COPY
    return Step(act, at_source, at_target)


def _source_lacks(own: str | None, target: Have, at_source: Tombstone | None, at_target: Tombstone | None) -> Step:
    explained = at_source is not None and at_source.since in (Since.DONE, Since.PARDONED)
    if own and own == target.etag and target.is_copy and not explained:
        at_source = later(Tombstone(target.stamp, target.size, target.etag), at_source)
        if at_source is not None and at_source.since is Since.OVER:
            at_source = replace(at_source, since=Since.FOUND)
    act = Act.DELETE if covers(at_source, target) else Act.NOTHING
    return Step(act, at_source, at_target)


def _over(tombstone: Tombstone | None) -> Tombstone | None:
    """Of a place that has an object."""
    return None if tombstone is None else replace(tombstone, since=Since.OVER)
