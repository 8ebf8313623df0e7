"""Errors as pages: who isn't signed in goes to do so, who was refused learns who could give the right."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template import TemplateDoesNotExist
from django.template.loader import select_template
from django.urls import reverse
from django.utils.html import escape

from core import errors
from exports.api.exports import visible
from mirrors.services.rights import sees_some_mirror
from rbac import services as rbac
from rbac.services import effective_permissions
from rbac.signin import form_recovery
from rbac.signin.views import ask_to_sign_in
from rbac.views.parts import tabs_of
from replication.services.rights import LIST
from web.errors import field_of, headers_of, json_error, message_of, status_of

API_PREFIXES = ("/service/", "/api/", "/hooks/")


class ErrorPages:
    """Middleware: an expected error that leaves a view becomes its page; who isn't signed in goes to do so."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            # PostgreSQL would take it for an error of ours.
            error = errors.Invalid("an address can't contain a NUL character", field=_with_nul(request))
            return error_answer(request, HTTPStatus.BAD_REQUEST, message_of(error), error)
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exc: Exception) -> HttpResponse | None:
        """Django calls this with what a view raised; None leaves it to Django (a 500, logged with its traceback)."""
        status = status_of(exc)
        if status is None or status == HTTPStatus.INTERNAL_SERVER_ERROR:
            return None
        if isinstance(exc, errors.NotSignedIn) and not _wants_json(request):
            return _to_sign_in(request)
        answer = error_answer(request, status, message_of(exc), error=exc)
        for name, value in headers_of(exc).items():
            answer[name] = value
        return answer


def _with_nul(request: HttpRequest) -> str:
    """The first parameter that holds a NUL character; "" if it is in none."""
    return next((name for name, values in request.GET.lists() if "\0" not in name and "\0" in "".join(values)), "")


def error_answer(
    request: HttpRequest, status: HTTPStatus, message: str, error: Exception | None = None
) -> HttpResponse:
    """An error as JSON for programs, else as a page: `<status>.html`, else `error.html`, else plain text.

    The templates get: status (number), phrase, message, error, reason (the message of an error of ours) and, from a
    Denied, action and arn, and why it was refused to whom.
    """
    if _wants_json(request):
        return json_error(status, message, field=field_of(error))
    context = {
        "status": int(status),
        "phrase": status.phrase,
        "message": message,
        "error": error,
        "reason": message if isinstance(error, errors.LakeMirrorError) else "",
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
    return {
        "explanation": effective_permissions.explain(user, error.action, error.arn),
        "grantors": effective_permissions.who_can_grant(user),
        "way": _page_they_see(user),
    }


def _page_they_see(user: Any) -> tuple[str, str]:
    """The words and the address of the first page that somebody sees who was refused another one."""
    if sees_some_mirror(user):
        return "Overview", reverse("home")
    if visible(user):
        return "Exports", reverse("exports")
    if rbac.allowed(user, *LIST):
        return "Replication", reverse("rules")
    return ("Access", reverse("access")) if any(tab.listing for tab in tabs_of(user)) else ("", "")


def _wants_json(request: HttpRequest) -> bool:
    return request.path.startswith(API_PREFIXES) or not request.accepts("text/html")


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    """On to the sign-in page and back. A fragment that a page asked for makes the whole page go there."""
    if request.headers.get("HX-Request") != "true":
        return ask_to_sign_in(request) if form_recovery.is_kept(request) else redirect_to_login(_page_of(request))
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
        return json_error(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the log")
    return HttpResponse("<h1>Internal Server Error</h1><p>See the log.</p>", status=500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW. Signing in anew makes the forms of other tabs too old: they lose nothing by it."""
    if form_recovery.is_kept(request) and _is_ours(request):
        return _form_again(request)
    return error_answer(request, HTTPStatus.FORBIDDEN, "this form has expired: go back, reload the page and try again")


def _is_ours(request: HttpRequest) -> bool:
    """Whether a page of ours sent it: nobody else fills in people's forms."""
    return urlsplit(request.headers.get("Origin", "")).netloc == request.get_host()


def _form_again(request: HttpRequest) -> HttpResponse:
    if not request.user.is_authenticated:
        return ask_to_sign_in(request)
    form_recovery.lay_by(request, form_recovery.seal(request))
    return redirect(request.get_full_path())
