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
    NoBucket,
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
_ASK_CLOCKS = "Synchronise the clocks of this machine and the store: signatures are valid for minutes only"
_ASK_KEYS = (
    "Grant the store's key the missing permission: work then continues by itself. To use another key, change it on the "
    "Installations page, or in the configuration file and restart"
)
_ARCHIVED = "InvalidObjectState"
_ASK_RESTORE = "Restore it there from the archive"
_FULL = {"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"}
_ASK_BUCKET = (
    "Create the bucket, or correct the store's endpoint and region on the page of its installation: the bucket may "
    "be in another store"
)
_KMS = "kms"
_ASK_KMS = (
    "The object is encrypted: grant the user of this access key kms:Decrypt (to write, kms:GenerateDataKey too) on the "
    "KMS key named here, and make sure that the key is enabled"
)
_ABSENT = {"NoSuchKey", "NotFound", "404"}
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
    status: int, code: str, message: str, doing: str, where: str, retry_after: float = 0.0, right: str = ""
) -> LakeMirrorError:
    """What a store's refusal means for the caller. `right`: what the request needs, like `s3:GetObject`."""
    error = _meaning(status, code, message, doing, where, retry_after, right)
    error.store_code = code
    return error


def _meaning(
    status: int, code: str, message: str, doing: str, where: str, retry_after: float, right: str
) -> LakeMirrorError:
    name = "" if code == str(status) else f" {code}"
    text = f"{where} answered {status}{name} to {doing}".replace("  ", " ") + (f": {message}" if message else "")
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
    if code == "NoSuchBucket":
        return NoBucket(text, hint=_ASK_BUCKET)
    if code in _ABSENT and status in (0, 404):
        return NotFound(text)
    known = _BY_STATUS.get(status, RemoteFailure if status >= 500 else Invalid)
    if _is_about_kms(code, message) and known in (Denied, Invalid, NotFound):
        return Denied(text, hint=_ASK_KMS)
    return known(text, hint=_advice(known, right))


def _is_about_kms(code: str, message: str) -> bool:
    """AWS gives codes like `KMS.DisabledException`, or an AccessDenied that names the action `kms:Decrypt`; MinIO those
    of AWS, and `kms:KeyNotFound` with a 404, which says nothing of the object."""
    return code.lower().startswith((f"{_KMS}.", f"{_KMS}:")) or f" {_KMS}:" in message


def _advice(known: type[LakeMirrorError], right: str) -> str:
    if known is Denied and right:
        return f"{_ASK_KEYS}. It needs {right} there"
    return _ASK_KEYS if known in (Unauthenticated, Denied) else ""
