"""What would keep tags, locks and storage classes from travelling? Answers of stores as checks. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import Denied, LakeMirrorError
from core.exporting.preflight import statement
from core.installations.preflight import Check, CheckOutcome, NotAsked, not_known
from core.replicating.preflight import SOURCE

READ_TAGS, WRITE_TAGS = "s3:GetObjectTagging", "s3:PutObjectTagging"
READ_VERSION_TAGS, WRITE_VERSION_TAGS = "s3:GetObjectVersionTagging", "s3:PutObjectVersionTagging"
"""The same of single versions."""
LOCKING = ("s3:PutObjectRetention", "s3:PutObjectLegalHold")
CLASS = "storage-class"
Tried = Mapping[str, LakeMirrorError | None] | LakeMirrorError
"""By action: None, it was done; or why none was tried."""
_ADD = "Add this statement to the bucket policy, or, without Principal, to the policy of the user or role"
_CONTENT = "or have only content travel (metadata: content)"


def check_tags_readable(
    uri: str, answer: Mapping[str, str] | LakeMirrorError | None, *, versions: bool = False
) -> Check:
    """May our key read the tags of the source's first object, or of a version of it? None: there is none."""
    action = READ_VERSION_TAGS if versions else READ_TAGS
    check_id = f"{SOURCE}-right:{action}"
    if answer is None:
        return Check(check_id, CheckOutcome.OK, f"There is no object at {uri} yet whose tags could be read")
    if not isinstance(answer, LakeMirrorError):
        return Check(check_id, CheckOutcome.OK, f"Read the tags of an object of {uri}")
    return _refused(check_id, answer, "read tags of", uri, action)


def check_tags_written(side: str, uri: str, tried: Tried, *, versions: bool = False) -> Check:
    """May our key write tags at a target, of single versions?"""
    action = WRITE_VERSION_TAGS if versions else WRITE_TAGS
    check_id, error = f"{side}-right:{action}", _of(tried, action)
    if error is None:
        return Check(check_id, CheckOutcome.OK, f"Wrote tags of an object at {uri}")
    return _refused(check_id, error, "write tags at", uri, action)


def check_locks(
    side: str, uri: str, source: bool | LakeMirrorError, there: bool | LakeMirrorError, tried: Tried
) -> Check:
    """Can objects be locked at a target, if they can at the source?"""
    check_id = f"{side}-lock"
    if source is False:
        return Check(check_id, CheckOutcome.OK, "The source's bucket has no Object Lock: there is no lock to copy")
    for side_told, answer in (("the source's", source), (f"{uri}'s", there)):
        if isinstance(answer, LakeMirrorError):
            return not_known(check_id, f"whether {side_told} bucket has Object Lock", answer)
    if not there:
        text = f"Objects can be locked at the source, and {uri} lies in a bucket without Object Lock"
        return Check(check_id, CheckOutcome.FAILED, text, f"Choose a bucket that was created with it, {_CONTENT}")
    for action in LOCKING:
        if (error := _of(tried, action)) is not None:
            return _refused(check_id, error, "lock objects at", uri, action)
    return Check(check_id, CheckOutcome.OK, f"Locked an object at {uri}, and let it go")


def check_class(side: str, uri: str, name: str, tried: Tried) -> Check:
    """Does a target take objects of a storage class?"""
    check_id, error = f"{side}-{CLASS}", _of(tried, CLASS)
    if error is None:
        return Check(check_id, CheckOutcome.OK, f"Wrote an object of the storage class {name} to {uri}")
    if isinstance(error, NotAsked) or error.retryable:
        return not_known(check_id, f"whether {uri} takes the storage class {name}", error, error.hint)
    text = f"{uri} does not take objects of the storage class {name}: {error.message}"
    return Check(check_id, CheckOutcome.FAILED, text, "Choose one that its store has, or leave it empty")


def _of(tried: Tried, action: str) -> LakeMirrorError | None:
    return tried if isinstance(tried, LakeMirrorError) else tried.get(action)


def _refused(check_id: str, error: LakeMirrorError, what: str, uri: str, action: str) -> Check:
    if isinstance(error, NotAsked) or error.retryable:
        return not_known(check_id, f"whether the key may {what} {uri}", error, error.hint)
    message = f"The key can't {what} {uri}: {error.message}"
    if isinstance(error, Denied):
        return Check(check_id, CheckOutcome.FAILED, message, f"{_ADD}, {_CONTENT}", statement(action, uri))
    return Check(check_id, CheckOutcome.FAILED, message, error.hint or "See the message of the store")
