"""Idempotency-Key: a POST of the API that comes twice with one key is carried out once, and answered alike.

The key is claimed by a row of its own before anything is done, so of two that come together one loses. What became of
a request whose process died is not known, so its key stays claimed: nothing is done twice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import UTC
from http import HTTPStatus

from django.core.exceptions import RequestDataTooBig
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from rest_framework.exceptions import APIException

from core.errors import LakeMirrorError
from rbac.keys.authentication import AccessKeyAuthentication
from rbac.models import KeyedCall, User
from web.errors import json_error
from web.openapi import PREFIXES

HEADER = "Idempotency-Key"
KEY = re.compile(r"[!-~]{1,255}")
OTHER = "this Idempotency-Key was already used for another request. Use a new key for each request"
SECRET = "this request was carried out before; its answer contains a secret and is not stored"


class OncePerKey:
    """Middleware around the API. Who isn't known, or sends no key, goes on to the view as ever."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        key = request.headers.get(HEADER)
        if key is None or request.method != "POST" or not request.path.startswith(PREFIXES):
            return self.get_response(request)
        user, print_ = _caller(request), _fingerprint(request)
        if user is None or print_ is None:
            return self.get_response(request)
        if not KEY.fullmatch(key):
            text = "Idempotency-Key: expected 1 to 255 visible ASCII characters"
            return json_error(HTTPStatus.BAD_REQUEST, text, field=HEADER)
        call, is_new = _claim(user, key, print_)
        return self._carry_out(request, call) if is_new else _answer_again(request, call, print_)

    def _carry_out(self, request: HttpRequest, call: KeyedCall) -> HttpResponse:
        try:
            answer = self.get_response(request)
        except BaseException:
            call.delete()
            raise
        if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.streaming:  # of any length: made anew
            call.delete()
        else:
            secret = "no-store" in answer.get("Cache-Control", "")
            call.status, call.answer = answer.status_code, None if secret else answer.content.decode()
            call.save(update_fields=["status", "answer"])
        return answer


def prune() -> int:
    """Forget the keys that are old; gives how many."""
    number, _ = KeyedCall.objects.expired().delete()
    return number


def _caller(request: HttpRequest) -> User | None:
    """Who the view will find: by access key, else by session."""
    try:
        authenticated = AccessKeyAuthentication().authenticate(request)
    except (APIException, LakeMirrorError):
        return None  # the view says why
    user = authenticated[0] if authenticated else request.user
    return user if user.is_authenticated and user.is_active else None


def _fingerprint(request: HttpRequest) -> str | None:
    """What tells requests of one key apart; None for a body that the view refuses as too long."""
    try:
        body = request.body
    except RequestDataTooBig:
        return None
    return hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode() + body).hexdigest()


def _claim(user: User, key: str, print_: str) -> tuple[KeyedCall, bool]:
    """The row of a key, and whether it was made by this very request."""
    KeyedCall.objects.expired().filter(user=user, key=key).delete()
    while True:
        try:
            with transaction.atomic():
                return KeyedCall.objects.create(user=user, key=key, fingerprint=print_, begun_at=Now()), True
        except IntegrityError:
            if call := KeyedCall.objects.filter(user=user, key=key).first():
                return call, False  # else its request failed just now, and the key is free again


def _answer_again(request: HttpRequest, call: KeyedCall, print_: str) -> HttpResponse:
    if call.fingerprint != print_:
        return json_error(HTTPStatus.UNPROCESSABLE_ENTITY, OTHER, field=HEADER)
    if call.status is None:
        since = call.begun_at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        text = (
            f"a request with this Idempotency-Key has been in progress since {since}. If that was long ago, it ended "
            "without an answer: check whether it took effect before you send it with another key"
        )
        answer = json_error(HTTPStatus.CONFLICT, text, field=HEADER)
        answer["Retry-After"] = "1"
        return answer
    if call.answer is None:
        return json_error(HTTPStatus.CONFLICT, SECRET, field=HEADER)
    return HttpResponse(
        call.answer,
        status=call.status,
        content_type="application/json",
        headers={"Idempotency-Replayed": "true"},
    )
