"""A program that calls: who it is, whether it guesses, and whether it asks too often."""

from __future__ import annotations

import hashlib

from django.http import HttpRequest
from rest_framework.exceptions import AuthenticationFailed

from rbac.keys import authenticators, rate_limit
from rbac.keys.rate_limit import TooMany
from rbac.keys.ttl_cache import Remembered
from rbac.models import User
from rbac.signin import brute_force

WRONG = "wrong access key id or secret, or the key is expired or disabled"
_KNOWN_FOR = 15 * 60.0


_right_lately: Remembered[bool] = Remembered(10_000)
"""Digests of secrets that were right lately, from where they came: the owner's, whom other people's guesses at the same
address keep out no more. They are looked at all the same, each time."""


def identify(request: HttpRequest, key_id: str, secret: str) -> tuple[User, str]:
    """The caller and their key's id. AuthenticationFailed, TooMany, Unreachable, PermissionDenied."""
    where = brute_force.place_of_key(request, key_id)
    mark = hashlib.sha256(f"{where}:{secret}".encode("utf-8", "surrogatepass")).hexdigest()
    if not _right_lately.get(mark) and (wait := brute_force.wait_of(where)):
        raise TooMany("too many wrong secrets for this access key from this address", wait)
    user = authenticators.user_of(key_id, secret)
    if user is None:
        _right_lately.drop(mark)
        brute_force.failed(where)
        raise AuthenticationFailed(WRONG)
    _right_lately.put(mark, True, _KNOWN_FOR)
    _take_turn(key_id)
    return user, key_id


def _take_turn(key_id: str) -> None:
    buckets = rate_limit.shared()
    wait = buckets.take(key_id) if buckets else 0
    if wait:
        raise TooMany("too many requests with this access key", wait)
