"""Passwords that people replace: their own, or by a link that an administrator gave them.

A link is signed and bound to the user's password as it is, so the first use ends it, as does any other change of the
password, or signing in. Nothing of it is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from audit.verbs import Verb
from core.errors import Conflict
from rbac.models import User
from rbac.services import Actor, audit, user_set_password


@dataclass(frozen=True, slots=True)
class ResetLink:
    """A link just made; its path is in this answer and nowhere else."""

    path: str = field(repr=False)
    expires_at: datetime


def reset_link_create(*, actor: Actor, user: User, reason: str = "") -> ResetLink:
    """A link by which the user chooses a new password, once; Conflict for a user who is disabled."""
    if not user.is_active:
        raise Conflict(f"{user.username} is disabled: enable them first")
    expires_at = timezone.now() + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
    uid, token = urlsafe_base64_encode(force_bytes(user.pk)), default_token_generator.make_token(user)
    after = {"password_reset_link_until": expires_at.isoformat(timespec="seconds")}
    audit(actor=actor, right=("auth:UpdateUser", user.arn), verb=Verb.SET_PASSWORD, after=after, reason=reason)
    return ResetLink(reverse("password_reset_confirm", args=[uid, token]), expires_at)


@transaction.atomic
def password_replace(*, user: User, password: str, reason: str) -> None:
    """A user's own new password; all of their sessions end. Conflict if it was replaced since `user` was read."""
    now = User.objects.select_for_update().get(pk=user.pk)
    if now.password != user.password or not now.is_active:
        raise Conflict("the password has been changed meanwhile: start again")
    user_set_password(actor=user, user=user, password=password, reason=reason)
