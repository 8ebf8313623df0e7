"""What a store's refusal, an answer with a status and S3's code for the reason, means as an error of `core.errors`."""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import (
    Archived,
    Conflict,
    Denied,
    Full,
    Invalid,
    LakeMirrorError,
    NotFound,
    RemoteFailure,
    Throttled,
    Unauthenticated,
    Unreachable,
)

_WRONG_KEYS = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "AuthorizationHeaderMalformed",
}
_THROTTLED = {
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "RequestLimitExceeded",
    "TooManyRequests",
    "503 SlowDown",
}
_NO_QUORUM = {"SlowDownRead", "SlowDownWrite"}
"""What MinIO says of a key that too few of its drives can read or write, with 503: others may be well."""
_CLOCK = "RequestTimeTooSkewed"
_ASK_CLOCKS = "Set the clocks right, that of this machine and the store's: a signature lasts for minutes"
_ASK_KEYS = (
    "The store refuses the key, or what it asks for: once that is allowed there, work goes on by itself; another key "
    "is given on the page of installations, or in the configuration file with a restart"
)
_ARCHIVED = "InvalidObjectState"
_ASK_RESTORE = "Restore it there from the archive"
_FULL = {"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"}
_ABSENT = {"NoSuchKey", "NoSuchBucket", "NotFound", "404"}
_BY_STATUS: Mapping[int, type[LakeMirrorError]] = {
    401: Unauthenticated,
    403: Denied,
    404: NotFound,
    408: Unreachable,
    409: Conflict,
    412: Conflict,
    501: Invalid,
    507: Full,
}


def answer_error(
    status: int, code: str, message: str, doing: str, where: str, retry_after: float = 0.0
) -> LakeMirrorError:
    """What a store's refusal means for the caller."""
    text = f"{where} answered {status} {code} to {doing}".replace("  ", " ") + (f": {message}" if message else "")
    if code in _NO_QUORUM:
        return RemoteFailure(text)
    if code in _THROTTLED or status in (429, 503):
        return Throttled(text, retry_after=retry_after)
    if code in _FULL:
        return Full(text)
    if code == _CLOCK:
        return Unauthenticated(text, hint=_ASK_CLOCKS)
    if code in _WRONG_KEYS:
        return Unauthenticated(text, hint=_ASK_KEYS)
    if code == "RequestTimeout":
        return Unreachable(text)
    if code == _ARCHIVED:
        return Archived(text, hint=_ASK_RESTORE)
    if code in _ABSENT and status in (0, 404):
        return NotFound(text)
    known = _BY_STATUS.get(status, RemoteFailure if status >= 500 else Invalid)
    return known(text, hint=_ASK_KEYS if known in (Unauthenticated, Denied) else "")
