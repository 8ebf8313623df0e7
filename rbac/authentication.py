"""How programs say who they are: HTTP Basic with an access key, as lakeFS's own clients do."""

from __future__ import annotations

import base64
import binascii

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from rbac import services
from rbac.models import AccessKey, User

REALM = 'Basic realm="LakeMirror", charset="UTF-8"'


class AccessKeyAuthentication(BaseAuthentication):
    """Access key id and secret by HTTP Basic. Anything wrong with them gives one and the same 401."""

    def authenticate(self, request: Request) -> tuple[User, AccessKey] | None:
        """The key's user and the key; None when the request carries no Basic credentials."""
        scheme, _, encoded = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        key_id, secret = _decode(encoded)
        key = services.key_check(key_id=key_id, secret=secret)
        if key is None:
            raise AuthenticationFailed("wrong access key id or secret, or the key is expired or disabled")
        return key.user, key

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return REALM


def _decode(encoded: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise AuthenticationFailed("the Authorization header is no base64 of ID:SECRET") from error
    key_id, colon, secret = text.partition(":")
    if not colon:
        raise AuthenticationFailed("the Authorization header has no ':' between id and secret")
    return key_id, secret
