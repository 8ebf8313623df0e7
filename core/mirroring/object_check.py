"""Is the object at the destination the one that an entry names? Pure."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum

from core.errors import (
    Archived,
    Conflict,
    Denied,
    Full,
    Invalid,
    LakeMirrorError,
    NotSent,
    RemoteFailure,
    Unreachable,
)
from core.types import ObjectInfo

_ARCHIVED = {"GLACIER", "DEEP_ARCHIVE", "ARCHIVE_ACCESS", "DEEP_ARCHIVE_ACCESS"}
_PARTS = re.compile(r"-\d+$")
_MD5 = re.compile(r"[0-9a-f]{32}")


class Depth(StrEnum):
    """How deep a check looks; each includes those before it."""

    PRESENCE = "presence"
    SIZE = "size"
    ETAG = "etag"
    CONTENT = "content"

    @property
    def deeper(self) -> tuple[Depth, ...]:
        """Those that prove more."""
        known = tuple(Depth)
        return known[known.index(self) + 1 :]

    def is_deeper_than(self, other: Depth) -> bool:
        """Whether a check to this depth looks at more than one to the other."""
        return self in other.deeper


IN_S3 = "^s3a?://[^/]+/."
"""An imported object's address, if it lies in S3: others can't be looked at."""


def is_in_s3(address: str) -> bool:
    """Whether an imported object's address can be looked at."""
    return re.match(IN_S3, address) is not None


def shallower_of(depth: str, other: str) -> str:
    """The less deep one of two depths; "" is less than any."""
    if not (depth and other):
        return ""
    return other if Depth(depth).is_deeper_than(Depth(other)) else depth


def deeper_of(depth: Depth, other: str) -> Depth:
    """The deeper one of two depths; "" is none."""
    return Depth(other) if other and Depth(other).is_deeper_than(depth) else depth


class Imported(StrEnum):
    """What an entry does whose object lies outside of the storage namespace: block, or be looked for where it lies."""

    BLOCK = "block"
    ALLOW = "allow"


class Reason(StrEnum):
    """Why something does not count as arrived."""

    MISSING = "missing"
    SIZE = "size-differs"
    ETAG = "etag-differs"
    CONTENT = "content-differs"
    UNPROVEN = "content-unproven"
    ARCHIVED = "archived"
    UNREADABLE = "unreadable"
    IMPORTED = "imported"
    UNREACHABLE = "imported-unreachable"
    RANGE_MISSING = "range-missing"
    RANGE_DAMAGED = "range-damaged"
    RANGE_ARCHIVED = "range-archived"
    RANGE_UNREADABLE = "range-unreadable"
    METARANGE_MISSING = "metarange-missing"
    METARANGE_DAMAGED = "metarange-damaged"
    METARANGE_ARCHIVED = "metarange-archived"
    METARANGE_UNREADABLE = "metarange-unreadable"


OF_ENTRY = frozenset({Reason.SIZE, Reason.ETAG})
"""What an entry says, and may say wrongly: the source's object has the last word."""

WAIVABLE = frozenset({Reason.MISSING, Reason.ARCHIVED, Reason.UNREADABLE, Reason.IMPORTED, Reason.UNREACHABLE})
"""What a waiver of an object accepts: readers get nothing. Never that they would get something else."""


def address_hash(address: str) -> str:
    """An address, of whatever length, as it is found by."""
    return hashlib.sha256(address.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class What(StrEnum):
    """What a key holds."""

    OBJECT = "object"
    RANGE = "range"
    METARANGE = "metarange"


OF_RANGE = frozenset({Reason.RANGE_MISSING, Reason.RANGE_DAMAGED, Reason.RANGE_ARCHIVED, Reason.RANGE_UNREADABLE})
"""What is said of a range's own file, not of an object that it names."""

_ARCHIVED_AS = {
    What.OBJECT: Reason.ARCHIVED,
    What.RANGE: Reason.RANGE_ARCHIVED,
    What.METARANGE: Reason.METARANGE_ARCHIVED,
}
_UNREADABLE_AS = {
    What.OBJECT: Reason.UNREADABLE,
    What.RANGE: Reason.RANGE_UNREADABLE,
    What.METARANGE: Reason.METARANGE_UNREADABLE,
}


class Note(StrEnum):
    """What is to be said of an object that passed otherwise than by its entry; a range's row counts them."""

    BY_SIZE = "compared by size, because encryption changed the ETag"
    ENTRY_DIFFERS = "entry differs at the source too"
    BY_CONTENT = "copied in parts of another size, so its content was compared with the source's"
    BY_PARTS = "copied in parts of another size, each compared with the source's"
    NO_ORIGINAL = "not read: its ETag is not a hash of the content, and the source no longer has it"


Verdict = tuple[Reason, str] | None
"""None when an object counts as arrived, else why not, and a sentence with both values."""


def plain_etag(etag: str) -> str:
    """An ETag without quotes and without the `-N` of a multipart upload, which lakeFS does not record."""
    return _PARTS.sub("", etag.strip('"'))


def is_md5(info: ObjectInfo) -> bool:
    """Whether an ETag, as HEAD told it, is the MD5 of the content: uploaded in one piece, not encrypted by KMS."""
    return info.etag_is_content and _MD5.fullmatch(info.etag) is not None


def is_another(info: ObjectInfo, original: ObjectInfo | None) -> bool:
    """Whether an object is surely not the one that the source has (None: it has none), by what HEAD tells of both. Of
    one in other parts, or encrypted, nobody knows before its content was read."""
    if original is None or original.size != info.size:
        return True
    return is_md5(original) and is_md5(info) and original.etag != info.etag


def is_plain(info: ObjectInfo, size: int, etag: str) -> bool:
    """Whether an object is so exactly what its entry says that `judge_object` passes it at any depth, and no note."""
    return info.size == size and info.etag == etag and not info.storage_class


def judge_object(info: ObjectInfo | None, *, size: int, etag: str, depth: Depth) -> Verdict:
    """What its entry says of an object; `content` is judged as `etag` here, since nothing is read
    (core.mirroring.content_proof)."""
    if info is None:
        return Reason.MISSING, "not at the destination"
    if info.storage_class in _ARCHIVED and not info.restored:
        return Reason.ARCHIVED, f"archived: in storage class {info.storage_class} without an active restore"
    if depth is Depth.PRESENCE:
        return None
    if info.size != size:
        return Reason.SIZE, f"{info.size} bytes at the destination, {size} in the commit"
    if depth is not Depth.SIZE and info.etag_is_content and _other_etag(info, etag):
        return Reason.ETAG, f"ETag {plain_etag(info.etag)} at the destination, {plain_etag(etag)} in the commit"
    return None


def is_refusal(error: LakeMirrorError) -> bool:
    """Whether a store's error is an answer about one key: not of a store that fails, nor about who asks."""
    return isinstance(error, Denied | Invalid | Conflict)


def judge_refused(error: LakeMirrorError, what: What) -> Verdict:
    """What a store's refusal says of the one key that was asked for; None where that is no refusal of a key.

    Whoever calls has to know that the store as a whole still answers (`core.mirroring.content_proof.Refusals` asks it).
    """
    if not is_refusal(error):
        return None
    if isinstance(error, Archived):
        return _ARCHIVED_AS[what], f"archived, without an active restore: {error.message}"
    return _UNREADABLE_AS[what], f"the store refuses to read it: {error.message}"


def is_failure(error: LakeMirrorError) -> bool:
    """Whether a store's error may be the failure of one key: it tried and could not, or fell silent; not that it is
    full, throttles, or was never reached."""
    return isinstance(error, RemoteFailure | Unreachable) and not isinstance(error, Full | NotSent)


def judge_failed(error: LakeMirrorError, what: What) -> Verdict:
    """What a store's failure says of the one key that was asked for; None where it says nothing of a key.

    Whoever calls has to know that the store answers for another key right after.
    """
    if not is_failure(error):
        return None
    return _UNREADABLE_AS[what], f"the store reads other objects but fails on this one: {error.message}"


def judge_refusal(error: LakeMirrorError) -> tuple[Reason, str]:
    """An imported object's own place refused to tell of it: then the mirror's readers get no more than that."""
    return Reason.UNREACHABLE, f"imported, and can't be read at its own address: {error.message}"


def note_object(info: ObjectInfo, *, etag: str, depth: Depth) -> Note | None:
    """What is to be said of an object that `judge_object` let pass."""
    by_size = depth in (Depth.ETAG, Depth.CONTENT) and not info.etag_is_content and _other_etag(info, etag)
    return Note.BY_SIZE if by_size else None


def _other_etag(info: ObjectInfo, etag: str) -> bool:
    return bool(etag) and info.etag != etag and plain_etag(info.etag) != plain_etag(etag)
