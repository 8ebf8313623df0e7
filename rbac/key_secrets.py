"""Ids and secrets of access keys: how they are made, hashed and compared.

A secret is random and long, so one round of HMAC-SHA256 keeps it; the pepper (a key derived from SECRET_KEY) makes a
stolen table useless by itself.
"""

from __future__ import annotations

import re
import secrets
import string
from dataclasses import dataclass, field

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from core.errors import Invalid
from rbac.models import AccessKey

NO_HASH = "0" * 64
"""Compared when there is no such key, so that a wrong id takes as long as a wrong secret."""

_PURPOSE = "rbac.credentials.secret"  # never renamed: no key that was made before would open anything
_ID_LETTERS = string.ascii_uppercase + "234567"
_ID = re.compile(r"[A-Za-z0-9_-]{8,40}")
_SHORTEST_SECRET = 16
_LONGEST_SECRET = 256


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key just made, with the one copy of its secret."""

    key: AccessKey
    secret: str = field(repr=False)


def pair(key_id: str = "", secret: str = "") -> tuple[str, str]:
    """The given id and secret, checked; what is empty is made up."""
    key_id = key_id or "AKIA" + "".join(secrets.choice(_ID_LETTERS) for _ in range(16))
    secret = secret or secrets.token_urlsafe(30)
    if not is_key_id(key_id):
        raise Invalid("an access key id must be 8 to 40 letters, digits, _ or -", field="access_key_id")
    if not _SHORTEST_SECRET <= len(secret) <= _LONGEST_SECRET or not secret.isascii() or not secret.isprintable():
        raise Invalid(
            f"a secret must have {_SHORTEST_SECRET} to {_LONGEST_SECRET} printable ASCII characters",
            field="secret_access_key",
        )
    return key_id, secret


def is_key_id(text: str) -> bool:
    """Whether a text could be the id of a key at all."""
    return _ID.fullmatch(text) is not None


def hashed(secret: str) -> str:
    """The form that is stored."""
    return _hmac(secret, settings.SECRET_KEY)


def matches(secret: str, stored: str) -> bool:
    """Whether a secret belongs to a stored hash, made with SECRET_KEY or an earlier one that is still a fallback."""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return any(constant_time_compare(_hmac(secret, key), stored) for key in keys)


def _hmac(secret: str, key: str) -> str:
    return salted_hmac(_PURPOSE, secret, secret=key, algorithm="sha256").hexdigest()
