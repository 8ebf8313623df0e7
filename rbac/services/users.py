"""Users: made, changed, disabled, deleted."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from audit.record import Actor, audit
from audit.verbs import Verb
from core.errors import Invalid, NotFound
from rbac.models import Policy, Session, User
from rbac.services.administrators import administrator_kept
from rbac.services.authorize import forget
from rbac.services.rows import check, locked, save_new


def user_find(name: str) -> User:
    """The user of exactly that name, else NotFound: rights are asked for the name as it is written."""
    user = User.objects.filter(username=name).first()
    if user is None:
        raise NotFound(f"there is no user '{name[:80]}'")
    return user


@transaction.atomic
def user_create(
    *, actor: Actor, username: str, password: str = "", email: str = "", friendly_name: str = "", reason: str = ""
) -> User:
    """A new user; without a password they can only use access keys. Invalid, Conflict if the name is taken."""
    user = User(username=username, email=email, friendly_name=friendly_name)
    _set_password(user, password)
    save_new(user, f"there is a user '{username}' already")
    after = _shown(user) | {"password": bool(password)}
    audit(actor=actor, right=("auth:CreateUser", user.arn), verb=Verb.CREATE, after=after, reason=reason)
    return user


@transaction.atomic
def user_edit(
    *, actor: Actor, user: User, email: str | None = None, friendly_name: str | None = None, reason: str = ""
) -> bool:
    """Change what is given; false if that is how it was. A name stays: rights and the record speak of it."""
    row = locked(user)
    before = _shown(row)
    row.email = row.email if email is None else email
    row.friendly_name = row.friendly_name if friendly_name is None else friendly_name
    check(row)
    user.email, user.friendly_name, after = row.email, row.friendly_name, _shown(row)
    if before == after:
        return False
    row.save(update_fields=["email", "friendly_name"])
    audit(actor=actor, right=("auth:UpdateUser", user.arn), verb=Verb.CHANGE, before=before, after=after, reason=reason)
    return True


@administrator_kept()
def user_set_password(*, actor: Actor, user: User, password: str, reason: str = "") -> None:
    """Replace a password; the user's sessions end. Invalid if it is too easy to guess."""
    _set_password(user, password)
    user.save(update_fields=["password"])
    Session.objects.filter(user=user).delete()
    after = {"password": bool(password)}
    audit(actor=actor, right=("auth:UpdateUser", user.arn), verb=Verb.SET_PASSWORD, after=after, reason=reason)


@administrator_kept()
def user_set_active(*, actor: Actor, user: User, active: bool, reason: str = "") -> bool:
    """Enable or disable a user (their keys and sessions with them); false if nothing changed."""
    changed = User.objects.filter(pk=user.pk, is_active=not active).update(is_active=active) == 1
    user.is_active = active
    if not active:
        Session.objects.filter(user=user).delete()
    if changed:
        before, after = {"is_active": not active}, {"is_active": active}
        audit(
            actor=actor,
            right=("auth:UpdateUser", user.arn),
            verb=Verb.ENABLE if active else Verb.DISABLE,
            before=before,
            after=after,
            reason=reason,
        )
    return changed


@administrator_kept()
def user_delete(*, actor: Actor, user: User, reason: str = "") -> None:
    """Remove a user with their keys, memberships and attachments; the record of what they did stays."""
    locked(user)
    before = {
        **_shown(user),
        "groups": list(user.rbac_groups.values_list("name", flat=True)),
        "policies": list(Policy.objects.filter(attachments__user=user).values_list("name", flat=True)),
        "access_keys": list(user.access_keys.values_list("key_id", flat=True)),
    }
    audit(actor=actor, right=("auth:DeleteUser", user.arn), verb=Verb.DELETE, before=before, reason=reason)
    User.objects.filter(pk=user.pk).delete()
    forget(None)


def _shown(user: User) -> dict[str, Any]:
    """What the record says of a user."""
    return {"username": user.username, "email": user.email, "friendly_name": user.friendly_name}


def _set_password(user: User, password: str) -> None:
    if not password:
        user.set_unusable_password()
        return
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), field="password") from error
    user.set_password(password)
