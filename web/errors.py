"""One table: which HTTP status each error becomes, and its JSON, `{"message": "..."}`.

An installation that refuses *our* credentials or calls is no fault of the caller: that is a 502, unlike a caller of
ours who isn't signed in (401) or lacks a right (403).
"""

from __future__ import annotations

import logging
import math
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import JsonResponse
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_exception_handler
from rest_framework.views import set_rollback

from core import errors
from graveler.errors import FormatError
from web.requests import REALM

logger = logging.getLogger(__name__)

STATUSES: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (errors.Invalid, HTTPStatus.BAD_REQUEST),
    (errors.NotSignedIn, HTTPStatus.UNAUTHORIZED),
    (errors.Archived, HTTPStatus.BAD_GATEWAY),
    (errors.Unauthenticated, HTTPStatus.BAD_GATEWAY),
    (errors.NotFound, HTTPStatus.NOT_FOUND),
    (errors.Conflict, HTTPStatus.CONFLICT),
    (errors.Fenced, HTTPStatus.CONFLICT),
    (errors.Stopped, HTTPStatus.CONFLICT),
    (errors.Stale, HTTPStatus.PRECONDITION_FAILED),
    (errors.NotSent, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.Unreachable, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.Throttled, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.Full, HTTPStatus.BAD_GATEWAY),
    (errors.NoData, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.Unreadable, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.RemoteFailure, HTTPStatus.BAD_GATEWAY),
    (errors.PartialFailure, HTTPStatus.BAD_GATEWAY),
    (errors.Corrupt, HTTPStatus.BAD_GATEWAY),
    (FormatError, HTTPStatus.BAD_GATEWAY),
    (RequestDataTooBig, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
)
"""The first class that fits decides."""


def status_of(exc: Exception) -> HTTPStatus | None:
    """The status that an error becomes; None for one that nobody expected."""
    if isinstance(exc, errors.Denied):
        return HTTPStatus.FORBIDDEN if exc.action else HTTPStatus.BAD_GATEWAY
    statuses = (status for kind, status in STATUSES if isinstance(exc, kind))
    fallback = HTTPStatus.INTERNAL_SERVER_ERROR if isinstance(exc, errors.LakeMirrorError) else None
    return next(statuses, fallback)


def message_of(exc: Exception) -> str:
    """What the caller is told: always names the field of an Invalid."""
    if isinstance(exc, RequestDataTooBig):
        return f"the body is larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes"
    field = getattr(exc, "field", "")
    return f"{field}: {exc}" if field and field not in str(exc) else str(exc)


def headers_of(exc: Exception) -> dict[str, str]:
    """Headers that go with an error: how to sign in, when to try again."""
    if isinstance(exc, errors.NotSignedIn):
        return {"WWW-Authenticate": REALM}
    if isinstance(exc, errors.Throttled) and exc.retry_after > 0:
        return {"Retry-After": str(math.ceil(exc.retry_after))}
    return {}


# --- the API ----------------------------------------------------------------------------------------------------------


def json_error(status: HTTPStatus, message: str) -> JsonResponse:
    """An error as JSON, where no view of DRF answers."""
    return JsonResponse({"message": message}, status=status)


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's handler: every error is `{"message": ...}`; an unexpected one is logged and says only that."""
    status = status_of(exc)
    if status is not None:
        set_rollback()
        return Response({"message": message_of(exc)}, status=status, headers=headers_of(exc))
    response = drf_exception_handler(exc, context)
    if response is None:
        set_rollback()
        logger.error("unexpected error in the API", exc_info=exc)
        return Response({"message": "internal error; the log has more"}, status=500)
    response.data = {"message": _sentence(response.data)}
    return response


def _sentence(detail: Any) -> str:
    """DRF's tree of messages as one line, each with its field."""
    if isinstance(detail, dict):
        return "; ".join(_named(str(name), _sentence(value)) for name, value in detail.items())
    if isinstance(detail, list | tuple):
        return " ".join(_sentence(item) for item in detail)
    return str(detail)


def _named(name: str, sentence: str) -> str:
    return sentence if name in ("detail", "non_field_errors") else f"{name}: {sentence}"
