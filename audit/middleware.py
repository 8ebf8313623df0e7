"""Writes down what a request was refused, once its answer is made and nothing is rolled back any more."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from audit import refusals, strangers

PROGRAMS = ("/service/", "/api/", "/hooks/", "/metrics")


class RecordRefusals:
    """Middleware: `services.require` leaves with the user what it refused them; 401 and 429 are strangers' own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self.get_response(request)
        if request.path in settings.ANSWERED_WITHOUT_DATABASE:
            return answer  # to learn who it was would ask it
        user = getattr(request, "user", None)
        for action, arn in dict.fromkeys(getattr(user, "refused", ())):
            refusals.refused(user, action, arn)
        if kind := _kind(request, answer.status_code):
            strangers.refused(kind)
        return answer


def _kind(request: HttpRequest, status: int) -> str:
    """What a stranger lacked; "" where nobody was refused, or was led to sign in."""
    given = request.headers.get("Authorization", "")
    if status == 429:
        return "too-many-attempts"
    if status != 401 or not (given or request.path.startswith(PROGRAMS)):
        return ""
    if "/hooks/" in request.path:
        return "wrong-webhook-secret"
    return "wrong-key" if given else "no-credentials"
