"""Signing in with an OpenID provider: who somebody is, they prove there. Loaded only where one is configured.

The code flow with state, nonce and PKCE; Authlib makes and checks them, and the ID token's signature. What stands
between the two steps is kept in the session.
"""

from __future__ import annotations

import functools
import logging
import re
from typing import Any

from django.http import HttpRequest, HttpResponse

from core.errors import Conflict, Invalid, LakeMirrorError
from deployment import config
from rbac import services
from rbac.models import NAME_PATTERN, User

logger = logging.getLogger(__name__)

ACTOR = "system:openid"
SECONDS = 5


class Refused(LakeMirrorError):
    """The provider, or what it said, signs nobody in; the text is for who tries."""


@functools.cache
def _provider() -> Any:
    """Authlib's client of the configured provider."""
    from authlib.integrations.django_client import OAuth

    settings = config.current().auth.openid
    return OAuth().register(
        "openid",
        client_id=settings.client_id,
        client_secret=settings.client_secret.reveal() or None,
        server_metadata_url=f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={"scope": settings.scope, "code_challenge_method": "S256", "default_timeout": SECONDS},
    )


def begin(request: HttpRequest, return_to: str) -> HttpResponse:
    """Off to the provider, which sends people back to `return_to`. Refused if it can't be asked."""
    return _run_step(lambda: _provider().authorize_redirect(request, return_to))


def user_of(request: HttpRequest) -> User:
    """Whom the provider has sent back: a user here, made if so configured. Refused."""
    settings = config.current().auth.openid
    required = {"iss": settings.issuer, "aud": settings.client_id}
    options = {name: {"essential": True, "value": value} for name, value in required.items()}
    token = _run_step(lambda: _provider().authorize_access_token(request, claims_options=options))
    claims = token.get("userinfo")
    if not claims:
        raise Refused("the provider returned no ID token")
    name = claims.get(settings.claim)
    if not isinstance(name, str) or not re.match(NAME_PATTERN, name):
        raise Refused(f"the provider returned no '{settings.claim}' that is a valid user name here")
    user = User.objects.filter(username=name).first() or _made(name, claims)
    if not user.is_active or user.lakefs_region:
        raise Refused(f"'{name}' may not sign in here")
    return user


def _made(name: str, claims: Any) -> User:
    """A new user without rights and password, if the configuration wants that."""
    if not config.current().auth.openid.create_users:
        raise Refused(f"there is no user '{name}' here: ask an administrator to create one")
    email = claims.get("email") if claims.get("email_verified") is True else ""
    try:
        return services.user_create(actor=ACTOR, username=name, email=str(email or ""))
    except (Conflict, Invalid) as error:
        raise Refused(f"no user '{name}' can be created here: {error}") from error


def _run_step(step: Any) -> Any:
    """A step of Authlib's; whatever goes wrong in it (network, state, token) signs nobody in."""
    try:
        return step()
    except Exception as error:
        logger.warning("signing in with the OpenID provider failed: %s: %s", type(error).__name__, error)
        raise Refused("signing in there failed: try again, or ask an administrator to check the log") from error
