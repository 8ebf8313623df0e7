"""One table: which HTTP status each error becomes, for the API (`{"message": "..."}`) and for pages alike.

An installation that refuses *our* credentials or calls is no fault of the caller: that is a 502, unlike a caller of
ours who isn't signed in (401) or lacks a right (403).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.template import TemplateDoesNotExist
from django.template.loader import select_template
from django.utils.html import escape
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_exception_handler
from rest_framework.views import set_rollback

from core import errors
from graveler.errors import FormatError
from rbac import rights, typed
from rbac.authentication import REALM
from rbac.exceptions import NotSignedIn
from rbac.views import ask_to_sign_in

logger = logging.getLogger(__name__)

STATUSES: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (errors.Invalid, HTTPStatus.BAD_REQUEST),
    (NotSignedIn, HTTPStatus.UNAUTHORIZED),
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
    (errors.Corrupt, HTTPStatus.BAD_GATEWAY),
    (FormatError, HTTPStatus.BAD_GATEWAY),
    (RequestDataTooBig, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
)
"""The first class that fits decides."""

API_PREFIXES = ("/service/", "/api/", "/hooks/")


def status_of(exc: Exception) -> HTTPStatus | None:
    """The status that an error becomes; None for one that nobody expected."""
    if isinstance(exc, errors.Denied):
        return HTTPStatus.FORBIDDEN if exc.action else HTTPStatus.BAD_GATEWAY
    found = (status for kind, status in STATUSES if isinstance(exc, kind))
    fallback = HTTPStatus.INTERNAL_SERVER_ERROR if isinstance(exc, errors.LakeMirrorError) else None
    return next(found, fallback)


def message_of(exc: Exception) -> str:
    """What the caller is told: always names the field of an Invalid."""
    if isinstance(exc, RequestDataTooBig):
        return f"the body is larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE} bytes"
    field = getattr(exc, "field", "")
    return f"{field}: {exc}" if field and field not in str(exc) else str(exc)


def headers_of(exc: Exception) -> dict[str, str]:
    """Headers that go with an error: how to sign in, when to try again."""
    if isinstance(exc, NotSignedIn):
        return {"WWW-Authenticate": REALM}
    if isinstance(exc, errors.Throttled) and exc.retry_after > 0:
        return {"Retry-After": str(math.ceil(exc.retry_after))}
    return {}


# --- the API ----------------------------------------------------------------------------------------------------------


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


# --- pages ------------------------------------------------------------------------------------------------------------


class ErrorPages:
    """Middleware: an expected error that leaves a view becomes its page; who isn't signed in goes to do so."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            # PostgreSQL would take it for an error of ours.
            return error_answer(request, HTTPStatus.BAD_REQUEST, "an address can't hold a NUL character")
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exc: Exception) -> HttpResponse | None:
        """Django calls this with what a view raised; None leaves it to Django (a 500, logged with its traceback)."""
        status = status_of(exc)
        if status is None or status == HTTPStatus.INTERNAL_SERVER_ERROR:
            return None
        if isinstance(exc, NotSignedIn) and not _wants_json(request):
            return _to_sign_in(request)
        answer = error_answer(request, status, message_of(exc), error=exc)
        for name, value in headers_of(exc).items():
            answer[name] = value
        return answer


def error_answer(
    request: HttpRequest, status: HTTPStatus, message: str, error: Exception | None = None
) -> HttpResponse:
    """An error as JSON for programs, else as a page: `<status>.html`, else `error.html`, else plain text.

    The templates get: status (number), phrase, message, error, told (the message of an error of ours) and, from a
    Denied, action and arn, and why it was refused to whom.
    """
    if _wants_json(request):
        return JsonResponse({"message": message}, status=status)
    context = {
        "status": int(status),
        "phrase": status.phrase,
        "message": message,
        "error": error,
        "told": message if isinstance(error, errors.LakeMirrorError) else "",
        "action": getattr(error, "action", ""),
        "arn": getattr(error, "arn", ""),
        **_refusal(request, error),
    }
    try:
        template = select_template([f"{int(status)}.html", "error.html"])
    except TemplateDoesNotExist:
        return HttpResponse(f"<h1>{status.phrase}</h1><p>{escape(message)}</p>", status=status)
    return HttpResponse(template.render(context, request), status=status)


def _refusal(request: HttpRequest, error: Exception | None) -> dict[str, Any]:
    """The statement that refused somebody who is signed in, and who could give them the right."""
    user = getattr(request, "user", None)
    if not isinstance(error, errors.Denied) or not error.action or user is None or not user.is_authenticated:
        return {}
    return {"why": rights.explain(user, error.action, error.arn), "grantors": rights.who_can_grant(user)}


def _wants_json(request: HttpRequest) -> bool:
    return request.path.startswith(API_PREFIXES) or not request.accepts("text/html")


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    """On to the sign-in page and back. A fragment that a page asked for makes the whole page go there."""
    if request.headers.get("HX-Request") != "true":
        return ask_to_sign_in(request) if typed.is_kept(request) else redirect_to_login(_page_of(request))
    answer = HttpResponse(status=HTTPStatus.UNAUTHORIZED)
    page = urlsplit(request.headers.get("HX-Current-URL", ""))
    answer["HX-Redirect"] = redirect_to_login(page._replace(scheme="", netloc="").geturl() or "/")["Location"]
    return answer


def _page_of(request: HttpRequest) -> str:
    """Where one is when one asks for something: what answers to POST alone is no place to come back to."""
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    page = urlsplit(request.headers.get("Referer", ""))
    return page._replace(scheme="", netloc="").geturl() if page.netloc == request.get_host() else "/"


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400."""
    return error_answer(request, HTTPStatus.BAD_REQUEST, "the request could not be read", exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler403."""
    return error_answer(request, HTTPStatus.FORBIDDEN, "that is not allowed", exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404."""
    return error_answer(request, HTTPStatus.NOT_FOUND, "there is nothing at this address", exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500; plain, for the templates themselves may be what is broken."""
    if _wants_json(request):
        return JsonResponse({"message": "internal error; the log has more"}, status=500)
    return HttpResponse("<h1>Internal Server Error</h1><p>The log has more.</p>", status=500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW. Signing in anew makes the forms of other tabs too old: they lose nothing by it."""
    if typed.is_kept(request) and _is_ours(request):
        return _form_again(request)
    return error_answer(request, HTTPStatus.FORBIDDEN, "this form is too old or not ours: go back, reload, try again")


def _is_ours(request: HttpRequest) -> bool:
    """Whether a page of ours sent it: nobody else fills in people's forms."""
    return urlsplit(request.headers.get("Origin", "")).netloc == request.get_host()


def _form_again(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return ask_to_sign_in(request)
    typed.lay_by(request, typed.seal(request))
    return redirect(request.get_full_path())
