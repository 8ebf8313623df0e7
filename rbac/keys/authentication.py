"""How programs say who they are: HTTP Basic with an access key, as lakeFS's own clients do."""

from __future__ import annotations

import base64
import binascii

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed
from rest_framework.request import Request

from core.errors import LakeMirrorError
from rbac.keys import identify
from rbac.models import User
from web import requests
from web.requests import REALM


class AccessKeyAuthentication(BaseAuthentication):
    """Access key id and secret by HTTP Basic. Anything wrong with them gives one and the same 401."""

    def authenticate(self, request: Request) -> tuple[User, str] | None:
        """The key's user and the key's id; None when the request carries no Basic credentials.

        However often it is asked for, a request counts once.
        """
        http_request = requests.plain(request)
        if not hasattr(http_request, "caller"):
            http_request.caller = _caller(http_request)
        if isinstance(http_request.caller, Exception):
            raise http_request.caller
        caller: tuple[User, str] | None = http_request.caller
        return caller

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return REALM


def _caller(request: HttpRequest) -> tuple[User, str] | Exception | None:
    """Who it is, or why that can't be told."""
    scheme, _, encoded = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return identify.identify(request, *_decode(encoded))
    except (APIException, LakeMirrorError) as error:
        return error


def _decode(encoded: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise AuthenticationFailed("the Authorization header is not base64 of ID:SECRET") from error
    key_id, colon, secret = text.partition(":")
    if not colon:
        raise AuthenticationFailed("the Authorization header has no ':' between id and secret")
    return key_id, secret
