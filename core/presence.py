"""Is the object at the destination the one that an entry names? Pure."""

from __future__ import annotations

import re
from enum import StrEnum

from core.types import ObjectInfo

_ARCHIVED = {"GLACIER", "DEEP_ARCHIVE", "ARCHIVE_ACCESS", "DEEP_ARCHIVE_ACCESS"}
_PARTS = re.compile(r"-\d+$")


class Depth(StrEnum):
    """How deep a check looks; each includes those before it."""

    PRESENCE = "presence"
    SIZE = "size"
    ETAG = "etag"


class Reason(StrEnum):
    """Why something does not count as arrived."""

    MISSING = "missing"
    SIZE = "size-differs"
    ETAG = "etag-differs"
    ARCHIVED = "archived"
    IMPORTED = "imported"
    RANGE_MISSING = "range-missing"
    RANGE_DAMAGED = "range-damaged"
    METARANGE_MISSING = "metarange-missing"
    METARANGE_DAMAGED = "metarange-damaged"


def plain_etag(etag: str) -> str:
    """An ETag without quotes and without the `-N` of a multipart upload, which lakeFS does not record."""
    return _PARTS.sub("", etag.strip('"'))


def judge_object(found: ObjectInfo | None, *, size: int, etag: str, depth: Depth) -> tuple[Reason, str] | None:
    """None when the object counts as arrived, else the reason and a sentence with both values."""
    if found is None:
        return Reason.MISSING, "not at the destination"
    if found.storage_class in _ARCHIVED and not found.restored:
        return Reason.ARCHIVED, f"there, but in storage class {found.storage_class} without an active restore"
    if depth is Depth.PRESENCE:
        return None
    if found.size != size:
        return Reason.SIZE, f"{found.size} bytes at the destination, {size} in the commit"
    if depth is Depth.ETAG and etag and found.etag_is_content and plain_etag(found.etag) != plain_etag(etag):
        return Reason.ETAG, f"ETag {plain_etag(found.etag)} at the destination, {plain_etag(etag)} in the commit"
    return None
