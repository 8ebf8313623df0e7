"""Why a key could not be brought to the destination, in classes that a page can count."""

from __future__ import annotations

from enum import StrEnum

from core.errors import (
    Conflict,
    Denied,
    Full,
    Invalid,
    LakeMirrorError,
    NotFound,
    Throttled,
    Unauthenticated,
    Unreachable,
)


class Reason(StrEnum):
    """`gone` and `changed` are the source object's, `foreign` is somebody's own file where a marker goes; all others
    say what a store answered."""

    GONE = "gone"
    CHANGED = "changed"
    FOREIGN = "foreign"
    KEY = "key"
    METADATA = "metadata"
    DENIED = "denied"
    NOT_FOUND = "not-found"
    REFUSED = "refused"
    THROTTLED = "throttled"
    UNREACHABLE = "unreachable"
    FULL = "full"
    STORE = "store"


class KeyFailed(LakeMirrorError):
    """What keeps one key from its place, for as long as neither changes."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


_BY_CLASS: tuple[tuple[type[LakeMirrorError], Reason], ...] = (
    (Denied, Reason.DENIED),
    (Unauthenticated, Reason.DENIED),
    (NotFound, Reason.NOT_FOUND),
    (Throttled, Reason.THROTTLED),
    (Unreachable, Reason.UNREACHABLE),
    (Full, Reason.FULL),
    (Conflict, Reason.REFUSED),
    (Invalid, Reason.REFUSED),
)


_ADVICE = {
    Reason.DENIED: "Grant this access key the missing permission",
    Reason.FULL: "Free space there",
    Reason.GONE: "Restore the object, or delete the file from the branch",
    Reason.FOREIGN: "Move that file elsewhere, or remove the expression that marks its directory",
    Reason.CHANGED: "Restore the object that was committed, or commit the file again",
}


def reason_of(error: LakeMirrorError) -> Reason:
    """The class of whatever ended the work on a key."""
    if isinstance(error, KeyFailed):
        return error.reason
    return next((reason for kind, reason in _BY_CLASS if isinstance(error, kind)), Reason.STORE)


def words_of(error: LakeMirrorError) -> str:
    """What is told of it, and what to do. A run that failed does not go on by itself, as other work does."""
    advice = _ADVICE.get(reason_of(error))
    return f"{error.message}. {advice}, then click Repair" if advice else str(error)


_WORDS = {
    Reason.GONE: "missing at the source",
    Reason.CHANGED: "changed at the source",
    Reason.FOREIGN: "another file in its place",
    Reason.KEY: "invalid key",
    Reason.METADATA: "metadata that S3 can't store",
    Reason.DENIED: "access denied",
    Reason.NOT_FOUND: "not found",
    Reason.REFUSED: "refused by the store",
    Reason.THROTTLED: "throttled",
    Reason.UNREACHABLE: "store can't be reached",
    Reason.FULL: "store is full",
    Reason.STORE: "store error",
}


def reason_words(reason: str) -> str:
    """A reason as people read it."""
    return _WORDS[Reason(reason)] if reason in set(Reason) else reason.replace("-", " ")
