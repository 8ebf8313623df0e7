"""Who a key id and a secret belong to: places that may know, asked in the order of `auth.authenticators`.

The first that knows the id decides. One that can't be asked raises Unreachable: nobody passes for want of an answer.
"""

from __future__ import annotations

import functools
import logging
import random
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.utils.crypto import constant_time_compare
from rest_framework.exceptions import PermissionDenied

from core.access.policies import Policy as Reading
from core.access.policies import deny_everything, parse_policy
from core.errors import Conflict, Invalid
from deployment import config
from deployment.wiring import clients
from rbac import services
from rbac.keys.answers import KEY_ID, No
from rbac.keys.lakefs_keys import LakeFSKeys
from rbac.keys.ttl_cache import Remembered
from rbac.models import NAME_PATTERN, AccessKey, User

logger = logging.getLogger(__name__)

ACTOR = "system:authorization-service"


class Authenticator(Protocol):
    """One place that knows keys. May raise Unreachable, PermissionDenied."""

    def user_of(self, key_id: str, secret: str) -> User | No: ...


def user_of(key_id: str, secret: str) -> User | None:
    """The user of a key, with `acting_key_id`; None if nobody knows it."""
    for authenticator in configured():
        answer = authenticator.user_of(key_id, secret)
        if isinstance(answer, User):
            answer.acting_key_id = key_id[:40]
            return answer
        if answer is No.WRONG:
            return None
    return None


@functools.cache
def configured() -> tuple[Authenticator, ...]:
    """The places that this process asks."""
    kinds = {"keys": OwnKeys, "api": AuthorizationService, "lakefs": LakeFSKeys}
    return tuple(kinds[name]() for name in config.current().auth.tried)


class OwnKeys:
    """Access keys of our own table."""

    def user_of(self, key_id: str, secret: str) -> User | No:
        """Its user, with the policies that they have here."""
        key = services.key_check(key_id=key_id, secret=secret)
        if key is not None:
            return key.user
        return No.WRONG if AccessKey.objects.filter(key_id=key_id[:41]).exists() else No.UNKNOWN


@dataclass(frozen=True, slots=True)
class Known:
    """What the service says of a key."""

    user: str
    secret: str = field(repr=False)
    policies: tuple[Reading, ...]


class AuthorizationService:
    """A service that speaks lakeFS's authorization API. Its users' policies are those that it gives."""

    def __init__(self) -> None:
        cache = config.current().auth.cache
        self._remembered: Remembered[Known] = Remembered(cache.size if cache.enabled else 0)

    def user_of(self, key_id: str, secret: str) -> User | No:
        """Its user, who is entered here by name when they first come; a user who is disabled here stays out."""
        if not KEY_ID.fullmatch(key_id):
            return No.UNKNOWN
        known = self._remembered.get(key_id)
        if known is None or not constant_time_compare(known.secret, secret):
            known = self._fetch(key_id)
        if known is None:
            return No.UNKNOWN
        if not constant_time_compare(known.secret, secret):
            return No.WRONG
        user = _user_here(known.user) or _entered(known.user)
        user.given_policies = known.policies
        return user if user.is_active else No.WRONG

    def _fetch(self, key_id: str) -> Known | None:
        service = clients.authorization()
        credentials = service.credentials_of(key_id)
        if credentials is None:
            self._remembered.drop(key_id)
            return None
        name, secret = credentials
        known = Known(name, secret, tuple(_read(policy) for policy in service.policies_of(name)))
        cache = config.current().auth.cache
        self._remembered.put(key_id, known, cache.ttl.total_seconds() + random.uniform(0, cache.jitter.total_seconds()))
        return known


def _user_here(name: str) -> User | None:
    """The user of exactly that name. PermissionDenied for one whom a lakeFS knows by it: that is somebody else."""
    user = User.objects.filter(username=name).first()
    if user is not None and user.lakefs_region:
        raise PermissionDenied(
            f"'{name}' is a user of the lakeFS in {user.lakefs_region} here, who signs in with its keys"
        )
    return user


def _entered(name: str) -> User:
    """A user of the service, from now on one of ours too: without a password, keys or policies of ours."""
    if not re.match(NAME_PATTERN, name):
        raise PermissionDenied(
            f"the authorization service calls this key's user '{name[:200]}', which is not a valid user name here: "
            "use letters, digits and _ . @ + -"
        )
    try:
        return services.user_create(actor=ACTOR, username=name)
    except Conflict as error:
        if (user := _user_here(name)) is not None:
            return user  # made by another request just now
        raise PermissionDenied(
            f"a user with the name of this key's user, '{name}' in different letter case exists here"
        ) from error


def _read(given: Any) -> Reading:
    """A policy of the service. One that can't be read might deny anything, so it denies all."""
    name = str(given.get("name", "")) if isinstance(given, dict) else ""
    try:
        return parse_policy({"id": name, "statement": given.get("statement")})
    except (Invalid, AttributeError) as error:
        logger.error("policy %s of the authorization service can't be read and denies everything: %s", name, error)
        return deny_everything(name)
