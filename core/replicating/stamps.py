"""Which of two objects of one key is the newer one, where rules lead both ways. Pure.

An object's stamp says when and where its content was written first. That of an object which somebody wrote is the time
and the place at which its store has it; a copy bears the stamp of what it was copied from, signed, in its metadata. So
however many places pass an object on, each of them judges it by the same time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote

STAMP_HEADER = "x-amz-meta-lakemirror-origin"
PURPOSE = "origin of copies"
"""What the key is derived for."""
LATEST_WRITE = timedelta(hours=1)
"""A copy in one piece is written within so much time from its stamp. What is younger was written by somebody else, who
took the metadata along."""
_VERSION = "1"
_MOMENT = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Stamp:
    """When content was written first, in whole seconds, and where: a region and a mark of the bucket there. `seen`, of
    a copy: when it was copied from there; None: it lies where it was written."""

    at: datetime
    region: str
    bucket: str
    seen: datetime | None = None

    @property
    def is_own(self) -> bool:
        """Whether the object that has it lies where it was written."""
        return self.seen is None

    @property
    def origin(self) -> tuple[datetime, str, str]:
        """When and where."""
        return self.at, self.region, self.bucket


def bucket_mark(region: str, bucket: str) -> str:
    """What tells buckets apart without naming them."""
    return hashlib.sha256(json.dumps([region, bucket]).encode()).hexdigest()[:16]


def own_stamp(modified: datetime, region: str, bucket: str) -> Stamp:
    """Of an object that somebody wrote there."""
    return Stamp(modified.replace(microsecond=0), region, bucket_mark(region, bucket))


def is_newer(source: Stamp, there: Stamp) -> bool:
    """Whether the object of the source replaces another one at the target: the one that was written later does; of one
    second, that of the region whose name comes first, then of the bucket whose mark does.

    Of two that were written in one second at one place only that place knows the later one: what it has is newer than
    any copy, and of copies that which was made from there later.
    """
    if source.at != there.at:
        return source.at > there.at
    if source.origin != there.origin:
        return source.origin < there.origin
    if there.seen is None:
        return False
    return source.seen is None or source.seen > there.seen


def of_copy(source: Stamp, there: Stamp | None, now: datetime) -> Stamp:
    """What the copy of a source's object bears that is made now in place of what is there."""
    if source.seen is not None:
        return source
    seen = now
    if there is not None and there.seen is not None and there.origin == source.origin:
        seen = max(now, there.seen + _MOMENT)  # the worker whose copy that is may have a clock ahead of ours
    return replace(source, seen=seen)


# --- in metadata ------------------------------------------------------------------------------------------------------


def written(stamp: Stamp, now: datetime, *, key: str, uri: str, size: int) -> str:
    """The header's value for a copy of so many bytes, with the stamp `of_copy`, that is written to the URI now."""
    assert stamp.seen is not None
    told = [_VERSION, str(_millis(stamp.at)), quote(stamp.region, safe=""), stamp.bucket]
    told += [str(_millis(stamp.seen)), str(_millis(now))]
    return ":".join([*told, _signature(key, uri, size, told)])


def read(value: str, *, key: str, uri: str, size: int, modified: datetime | None, in_parts: bool) -> Stamp | None:
    """The stamp of the copy at this URI; None for what bears none of ours, or what somebody wrote there with a copy's
    metadata. `in_parts`: it may have been written long after it was begun."""
    *told, signed = value.split(":")
    if not key or len(told) != 6 or told[0] != _VERSION:
        return None
    if not hmac.compare_digest(signed.encode(), _signature(key, uri, size, told).encode()):
        return None
    if not in_parts and modified is not None and modified > _time(told[5]) + LATEST_WRITE:
        return None
    return Stamp(_time(told[1]), unquote(told[2]), told[3], _time(told[4]))


def _millis(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _time(millis: str) -> datetime:
    return datetime.fromtimestamp(int(millis) / 1000, UTC)


def _signature(key: str, uri: str, size: int, told: list[str]) -> str:
    return hmac.new(key.encode(), json.dumps([uri, size, told]).encode(), hashlib.sha256).hexdigest()
