"""Is the object at the destination the one that an entry names? Pure."""

from __future__ import annotations

import re
from enum import StrEnum

from core.errors import LakeMirrorError
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
    IMPORTED = "imported"
    UNREACHABLE = "imported-unreachable"
    RANGE_MISSING = "range-missing"
    RANGE_DAMAGED = "range-damaged"
    METARANGE_MISSING = "metarange-missing"
    METARANGE_DAMAGED = "metarange-damaged"


class Note(StrEnum):
    """What is to be said of an object that passed otherwise than by its entry; a range's row counts them."""

    BY_SIZE = "compared by size, for encryption changed the ETag"
    ENTRY_DIFFERS = "entry differs at the source too"
    BY_CONTENT = "copied in other parts, so its content was compared with the source's"
    NO_ORIGINAL = "not read: its ETag is no hash of the content and the source has it no more"


Verdict = tuple[Reason, str] | None
"""None when an object counts as arrived, else why not, and a sentence with both values."""


def plain_etag(etag: str) -> str:
    """An ETag without quotes and without the `-N` of a multipart upload, which lakeFS does not record."""
    return _PARTS.sub("", etag.strip('"'))


def is_md5(found: ObjectInfo) -> bool:
    """Whether an ETag, as HEAD told it, is the MD5 of the content: uploaded in one piece, not encrypted by KMS."""
    return found.etag_is_content and _MD5.fullmatch(found.etag) is not None


def is_plain(found: ObjectInfo, size: int, etag: str) -> bool:
    """Whether an object is so exactly what its entry says that `judge_object` passes it at any depth, and no note."""
    return found.size == size and found.etag == etag and not found.storage_class


def judge_object(found: ObjectInfo | None, *, size: int, etag: str, depth: Depth) -> Verdict:
    """What its entry says of an object; `content` is judged as `etag` here, since nothing is read (core.proofs)."""
    if found is None:
        return Reason.MISSING, "not at the destination"
    if found.storage_class in _ARCHIVED and not found.restored:
        return Reason.ARCHIVED, f"there, but in storage class {found.storage_class} without an active restore"
    if depth is Depth.PRESENCE:
        return None
    if found.size != size:
        return Reason.SIZE, f"{found.size} bytes at the destination, {size} in the commit"
    if depth is not Depth.SIZE and found.etag_is_content and _other_etag(found, etag):
        return Reason.ETAG, f"ETag {plain_etag(found.etag)} at the destination, {plain_etag(etag)} in the commit"
    return None


def judge_refusal(error: LakeMirrorError) -> tuple[Reason, str]:
    """An imported object's own place refused to tell of it: then the mirror's readers get no more than that."""
    return Reason.UNREACHABLE, f"imported, and can't be read at its own address: {error.message}"


def note_object(found: ObjectInfo, *, etag: str, depth: Depth) -> Note | None:
    """What is to be said of an object that `judge_object` let pass."""
    by_size = depth in (Depth.ETAG, Depth.CONTENT) and not found.etag_is_content and _other_etag(found, etag)
    return Note.BY_SIZE if by_size else None


def _other_etag(found: ObjectInfo, etag: str) -> bool:
    return bool(etag) and found.etag != etag and plain_etag(found.etag) != plain_etag(etag)
