"""What came of a try to copy one object, and what a store's answer means for it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.bringing import Overwritten, Side, Unbrought
from core.errors import (
    Archived,
    Denied,
    Full,
    Invalid,
    LakeMirrorError,
    NoBucket,
    NotFound,
    RemoteFailure,
    Throttled,
    Unauthenticated,
    Unreachable,
    Unversioned,
)
from core.replicating.both_ways.tombstones import Tombstone
from core.replicating.states import Code
from core.replicating.versions import Version


class Kind(StrEnum):
    """What follows from a try. Done: it is at the target. Gone: the source has it no more, or none that the rule
    copies. Late: not begun. Changed: the source has another one by now. Retry: it may pass by itself. Silent: nobody
    answered. Refused: what concerns, as a rule, all objects. Failed: this object alone. Skipped: it can't be copied as
    it is."""

    DONE = "done"
    GONE = "gone"
    LATE = "late"
    CHANGED = "changed"
    RETRY = "retry"
    SILENT = "silent"
    REFUSED = "refused"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Copy:
    """A version that was written: as the target has it, and what names the source's (`versions.name_of`)."""

    there: Version
    of: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a try. `size` and `etag`: of the source's object, as it was copied or found equal, and `described`
    the digest of its description; `sent`: something was written, or deleted; `pause`: how long a store wants to be left
    alone, in seconds; `version`: which version it is about, where all are copied; `there`: the ETag that the target has
    by now, as far as that is known; `uncertain`: it may be carried out later, for nobody answered; `source`: of rules
    that lead both ways, the mark of the source's object; `replaced`: what somebody had written at the target, and was
    replaced (both_ways/losers.py); `brought`: of what was copied, and is newer elsewhere than it is at the source, what
    is deleted if the target lacks it; `made`: the versions that were written, where all are copied."""

    kind: Kind
    code: Code = Code.NONE
    message: str = ""
    size: int = 0
    etag: str = ""
    sent: bool = False
    pause: float = 0.0
    version: str = ""
    described: str = ""
    there: str = ""
    uncertain: bool = False
    source: str = ""
    replaced: str = ""
    brought: Tombstone | None = None
    made: tuple[Copy, ...] = ()


LATE = Outcome(Kind.LATE)


class Judged(Unbrought):
    """An answer whose meaning who asked knows better than its kind tells."""

    def __init__(self, side: Side, error: LakeMirrorError, kind: Kind, code: Code, message: str = "") -> None:
        super().__init__(side, error)
        self.outcome = Outcome(kind, code, message or str(error))


_Meaning = tuple[type[LakeMirrorError], Kind, Code]
_AT_SOURCE: Sequence[_Meaning] = (
    (Overwritten, Kind.CHANGED, Code.SOURCE_CHANGED),
    (NoBucket, Kind.REFUSED, Code.SOURCE_BUCKET_NOT_FOUND),
    (NotFound, Kind.GONE, Code.NONE),
    (Archived, Kind.SKIPPED, Code.SOURCE_ARCHIVED),
    (Denied, Kind.REFUSED, Code.SOURCE_DENIED),
    (Unauthenticated, Kind.REFUSED, Code.SOURCE_DENIED),
    (Invalid, Kind.SKIPPED, Code.CUSTOMER_KEY),
    (Unreachable, Kind.SILENT, Code.SOURCE_DOWN),
    (Throttled, Kind.RETRY, Code.SOURCE_FAILED),
    (RemoteFailure, Kind.RETRY, Code.SOURCE_FAILED),
    (LakeMirrorError, Kind.FAILED, Code.SOURCE_REFUSED),
)
_AT_TARGET: Sequence[_Meaning] = (
    (NotFound, Kind.REFUSED, Code.TARGET_BUCKET_NOT_FOUND),
    (Denied, Kind.REFUSED, Code.TARGET_DENIED),
    (Unauthenticated, Kind.REFUSED, Code.TARGET_DENIED),
    (Full, Kind.REFUSED, Code.TARGET_FULL),
    (Unversioned, Kind.REFUSED, Code.TARGET_UNVERSIONED),
    (Unreachable, Kind.SILENT, Code.TARGET_DOWN),
    (Throttled, Kind.RETRY, Code.TARGET_THROTTLED),
    (RemoteFailure, Kind.RETRY, Code.TARGET_FAILED),
    (LakeMirrorError, Kind.FAILED, Code.TARGET_REFUSED),
)


_WORDS_OF_TARGETS: Mapping[str, tuple[Kind, Code]] = {
    "KMS.NotFoundException": (Kind.REFUSED, Code.TARGET_KMS_KEY_NOT_FOUND),
    "kms:KeyNotFound": (Kind.REFUSED, Code.TARGET_KMS_KEY_NOT_FOUND),
    "KMS.DisabledException": (Kind.REFUSED, Code.TARGET_KMS_KEY_STATE),
    "KMS.KMSInvalidStateException": (Kind.REFUSED, Code.TARGET_KMS_KEY_STATE),
    "KMS.InvalidStateException": (Kind.REFUSED, Code.TARGET_KMS_KEY_STATE),
    "ObjectLockConfigurationNotFoundError": (Kind.REFUSED, Code.TARGET_LOCK_MISSING),
    "InvalidStorageClass": (Kind.FAILED, Code.STORAGE_CLASS_REFUSED),
    "MetadataTooLarge": (Kind.FAILED, Code.METADATA_REFUSED),
    "RequestHeaderSectionTooLarge": (Kind.FAILED, Code.METADATA_REFUSED),
    "InvalidTag": (Kind.FAILED, Code.METADATA_REFUSED),
    "InvalidTagError": (Kind.FAILED, Code.METADATA_REFUSED),
    "431": (Kind.FAILED, Code.METADATA_REFUSED),
}
"""What a target's store says of a write, by its own word, whatever the status is with which it says so."""


def of_error(unbrought: Unbrought) -> Outcome:
    """What a store's answer means. A write's 404 is of the bucket. A 400 to a plain GET or HEAD is how stores answer
    for an object that is encrypted by a customer's key."""
    if isinstance(unbrought, Judged):
        return unbrought.outcome
    error, at_source = unbrought.error, unbrought.side is Side.SOURCE
    if not at_source and error.store_code in _WORDS_OF_TARGETS:
        return Outcome(*_WORDS_OF_TARGETS[error.store_code], str(error))
    meanings = _AT_SOURCE if at_source else _AT_TARGET
    kind, code = next((kind, code) for known, kind, code in meanings if isinstance(error, known))
    pause = error.retry_after if isinstance(error, Throttled) else 0.0
    return Outcome(kind, code, str(error), pause=pause)
