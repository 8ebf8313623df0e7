"""One table: which HTTP status each error becomes, and its JSON, `{"message": "...", "field": "..."}`.

`field` is the field, parameter or header that the caller has to change, by its dotted path in a body; it is left out
where it is none of them. What is wrong in several fields at once is told of each in `errors` besides.

An installation that refuses *our* credentials or calls is no fault of the caller: that is a 502, unlike a caller of
ours who isn't signed in (401) or lacks a right (403).
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import JsonResponse
from rest_framework.exceptions import NotAuthenticated
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
    (errors.NoBucket, HTTPStatus.NOT_FOUND),
    (errors.NotFound, HTTPStatus.NOT_FOUND),
    (errors.Conflict, HTTPStatus.CONFLICT),
    (errors.Fenced, HTTPStatus.CONFLICT),
    (errors.Stopped, HTTPStatus.CONFLICT),
    (errors.Stale, HTTPStatus.PRECONDITION_FAILED),
    (errors.NotSent, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.Unreachable, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.Throttled, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.Full, HTTPStatus.BAD_GATEWAY),
    (errors.Unversioned, HTTPStatus.BAD_GATEWAY),
    (errors.NoData, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.Unreadable, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.RemoteFailure, HTTPStatus.BAD_GATEWAY),
    (errors.PartialFailure, HTTPStatus.BAD_GATEWAY),
    (errors.Corrupt, HTTPStatus.BAD_GATEWAY),
    (FormatError, HTTPStatus.BAD_GATEWAY),
    (RequestDataTooBig, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
)
"""The first class that fits decides."""
LONGEST_FIELD = 200
NO_CREDENTIALS = "no credentials: send an access key id and its secret by HTTP Basic, or sign in"
_OF_THE_WHOLE = ("detail", "non_field_errors")
"""What DRF calls that which is wrong with no single field."""


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
    field, text = field_of(exc), str(exc)
    names = [name for name in field.split(".") if name and not name.isdigit()]
    return text if all(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names) else f"{field}: {text}"


def headers_of(exc: Exception) -> dict[str, str]:
    """Headers that go with an error: how to sign in, when to try again."""
    if isinstance(exc, errors.NotSignedIn):
        return {"WWW-Authenticate": REALM}
    if isinstance(exc, errors.Throttled) and exc.retry_after > 0:
        return {"Retry-After": str(math.ceil(exc.retry_after))}
    return {}


# --- the API ----------------------------------------------------------------------------------------------------------


def json_error(status: HTTPStatus, message: str, *, field: str = "") -> JsonResponse:
    """An error as JSON, where no view of DRF answers."""
    return JsonResponse(_failure(message, field), status=status)


def field_of(exc: Exception | None) -> str:
    """What the caller has to change; "" if it is no field, parameter or header."""
    return str(getattr(exc, "field", ""))


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's handler: every error is `{"message": ...}`, with its field; an unexpected one is logged and says only
    that."""
    status = status_of(exc)
    if status is not None:
        set_rollback()
        return Response(_failure(message_of(exc), field_of(exc)), status=status, headers=headers_of(exc))
    response = drf_exception_handler(exc, context)
    if response is not None and isinstance(exc, NotAuthenticated):
        response.data = _failure(NO_CREDENTIALS, "")
        return response
    if response is None:
        set_rollback()
        logger.error("unexpected error in the API", exc_info=exc)
        return Response({"message": "internal error; see the log"}, status=500)
    response.data = _told(list(_problems(response.data)))
    return response


Problem = tuple[str, str]
"""A field's dotted path ("" for none), and what is wrong with it."""


def _failure(message: str, field: str) -> dict[str, Any]:
    return {"message": message} | ({"field": field[:LONGEST_FIELD]} if field else {})


def _told(problems: Sequence[Problem]) -> dict[str, Any]:
    """All that is wrong as one line, and each by its field."""
    message = "; ".join(f"{field}: {text}" if field else text for field, text in problems)
    named = [_failure(text, field) for field, text in problems if field]
    return _failure(message, problems[0][0] if problems else "") | ({"errors": named} if len(named) > 1 else {})


def _problems(detail: Any, path: str = "") -> Iterator[Problem]:
    """DRF's tree of messages: below a field's name lie texts, or trees of what is in the field."""
    if isinstance(detail, dict):
        for name, below in detail.items():
            yield from _problems(below, path if name in _OF_THE_WHOLE else f"{path}.{name}".lstrip("."))
    elif isinstance(detail, list | tuple) and not any(isinstance(item, dict | list | tuple) for item in detail):
        yield path, " ".join(str(item) for item in detail)
    elif isinstance(detail, list | tuple):
        for number, below in enumerate(detail):
            yield from _problems(below, f"{path}.{number}".lstrip(".")) if below else ()
    else:
        yield path, str(detail)
