"""The verbs of access: who is there, what they may do, and the record of it.

Every verb that changes something writes its audit event in the same transaction. None of them asks whether the actor
may do it: who receives a call from outside asks first, by `require`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from core.errors import Conflict, Denied, Invalid
from core.policies import Policy as Reading
from core.policies import Verdict, deny_everything, evaluate, parse_policy
from rbac import credentials, policy_cache, requests
from rbac.credentials import IssuedKey
from rbac.exceptions import NotSignedIn
from rbac.models import AccessKey, Attachment, AuditEvent, Group, Membership, Policy, User

logger = logging.getLogger(__name__)

Actor = User | str
"""Who does it: a user, or the name of one of our own parts, written `system:<part>`."""

NOTE_USE_EVERY = timedelta(minutes=1)


# --- may they? --------------------------------------------------------------------------------------------------------


def require(user: Any, *needs: tuple[str, str]) -> None:
    """Return if the user has every (action, ARN); NotSignedIn for nobody, Denied naming the first that is missing."""
    if not getattr(user, "is_authenticated", False):
        raise NotSignedIn("sign in, or send an access key id and its secret by HTTP Basic")
    for action, arn in needs:
        verdict = decide(user, action, arn)
        if not verdict.allowed:
            raise Denied(f"{user.get_username()} may not {action} on {arn}", action=action, arn=arn, hint=_why(verdict))


def allowed(user: Any, action: str, arn: str) -> bool:
    """Whether the user may do the action on the resource; nobody may anything."""
    return getattr(user, "is_authenticated", False) and decide(user, action, arn).allowed


def decide(user: User, action: str, arn: str) -> Verdict:
    """The verdict and the statement behind it. Asks the database once for each user object, not for each question."""
    if not user.is_active:
        return Verdict(False)
    return evaluate(policies_of(user), action, arn, user.username)


def policies_of(user: User) -> tuple[Reading, ...]:
    """Every policy that reaches a user, by name, on their own or through groups; one query, kept on the object."""
    kept: tuple[Reading, ...] | None = user.__dict__.get("_policies")
    if kept is None:
        cache = policy_cache.shared()
        kept = cache.of(user.pk, lambda: _policies_now(user)) if cache else _policies_now(user)
        user.__dict__["_policies"] = kept
    return kept


def _policies_now(user: User) -> tuple[Reading, ...]:
    reaching = {at.policy.name: at.policy for at in Attachment.objects.reaching(user)}
    return tuple(reading_of(policy) for policy in reaching.values())


def forget(user: User | None) -> None:
    """Ask anew what this user object may do, and all others once the transaction is through: policies have changed."""
    if user is not None:
        user.__dict__.pop("_policies", None)
    cache = policy_cache.shared()
    if cache is not None:
        transaction.on_commit(cache.clear)


def reading_of(policy: Policy) -> Reading:
    """A stored policy. One that can't be read (by an older version, say) might deny anything, so it denies all."""
    try:
        return parse_policy(policy.document)
    except Invalid as error:
        logger.error("policy %s can't be read and denies everything: %s", policy.name, error)
        return deny_everything(policy.name)


def _why(verdict: Verdict) -> str:
    return f"It is a {verdict.deciding}" if verdict.deciding else "No policy of theirs allows it"


# --- the record -------------------------------------------------------------------------------------------------------


def audit(
    *,
    actor: Any,
    action: str,
    arn: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reason: str = "",
    request: Any = None,
) -> AuditEvent:
    """Write down one change: who did what to which resource. `request` (Django's or DRF's) adds its id and address."""
    return AuditEvent.objects.create(
        actor=actor if isinstance(actor, str) else getattr(actor, "username", ""),
        key_id=getattr(actor, "acting_key_id", ""),
        action=action,
        arn=arn[:1400],
        before=before,
        after=after,
        reason=reason[:1000],
        request_id=requests.request_id(request),
        address=requests.address(request),
    )


# --- users ------------------------------------------------------------------------------------------------------------


@transaction.atomic
def user_create(
    *, actor: Actor, username: str, password: str = "", email: str = "", reason: str = "", request: Any = None
) -> User:
    """A new user; without a password they can only use access keys. Invalid, Conflict if the name is taken."""
    user = User(username=username, email=email)
    _set_password(user, password)
    _save_new(user, f"there is a user '{username}' already")
    after = {"username": username, "email": email, "password": bool(password)}
    audit(actor=actor, action="auth:CreateUser", arn=user.arn, after=after, reason=reason, request=request)
    return user


@transaction.atomic
def user_set_password(*, actor: Actor, user: User, password: str, reason: str = "", request: Any = None) -> None:
    """Replace a password; the user's other sessions end. Invalid if it is too easy to guess."""
    _set_password(user, password)
    user.save(update_fields=["password"])
    after = {"password": bool(password)}
    audit(actor=actor, action="auth:UpdateUser", arn=user.arn, after=after, reason=reason, request=request)


@transaction.atomic
def user_set_active(*, actor: Actor, user: User, active: bool, reason: str = "", request: Any = None) -> bool:
    """Enable or disable a user (their keys and sessions with them); false if nothing changed."""
    changed = User.objects.filter(pk=user.pk, is_active=not active).update(is_active=active) == 1
    user.is_active = active
    if changed:
        before, after = {"is_active": not active}, {"is_active": active}
        audit(
            actor=actor,
            action="auth:UpdateUser",
            arn=user.arn,
            before=before,
            after=after,
            reason=reason,
            request=request,
        )
    return changed


def _set_password(user: User, password: str) -> None:
    if not password:
        user.set_unusable_password()
        return
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), field="password") from error
    user.set_password(password)


def _save_new(row: User | Group, taken: str) -> None:
    """Insert a checked row. Invalid names the field; Conflict if somebody has the name, also if they won a race."""
    try:
        row.clean_fields()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise Invalid(" ".join(messages), field=field) from error
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(taken) from error


# --- groups -----------------------------------------------------------------------------------------------------------


@transaction.atomic
def group_create(*, actor: Actor, name: str, description: str = "", reason: str = "", request: Any = None) -> Group:
    """A new, empty group. Invalid, Conflict if the name is taken."""
    group = Group(name=name, description=description)
    _save_new(group, f"there is a group '{name}' already")
    after = {"name": name, "description": description}
    audit(actor=actor, action="auth:CreateGroup", arn=group.arn, after=after, reason=reason, request=request)
    return group


@transaction.atomic
def group_delete(*, actor: Actor, group: Group, reason: str = "", request: Any = None) -> None:
    """Remove a group; its members lose what it gave them."""
    before = {
        "name": group.name,
        "members": list(group.members.values_list("username", flat=True)),
        "policies": list(Policy.objects.filter(attachments__group=group).values_list("name", flat=True)),
    }
    audit(actor=actor, action="auth:DeleteGroup", arn=group.arn, before=before, reason=reason, request=request)
    group.delete()
    forget(None)


@transaction.atomic
def group_add(*, actor: Actor, group: Group, user: User, reason: str = "", request: Any = None) -> bool:
    """Make a user a member; false if they were."""
    _, created = Membership.objects.get_or_create(group=group, user=user)
    forget(user)
    if created:
        after = {"user": user.username}
        audit(actor=actor, action="auth:AddGroupMember", arn=group.arn, after=after, reason=reason, request=request)
    return created


@transaction.atomic
def group_remove(*, actor: Actor, group: Group, user: User, reason: str = "", request: Any = None) -> bool:
    """End a membership; false if there was none."""
    removed, _ = Membership.objects.filter(group=group, user=user).delete()
    forget(user)
    if removed:
        before = {"user": user.username}
        audit(
            actor=actor, action="auth:RemoveGroupMember", arn=group.arn, before=before, reason=reason, request=request
        )
    return bool(removed)


# --- policies ---------------------------------------------------------------------------------------------------------


@transaction.atomic
def policy_put(*, actor: Actor, document: Mapping[str, Any], reason: str = "", request: Any = None) -> Policy:
    """Create a policy, or replace the statements of the one of that id. Invalid names the statement that is wrong."""
    name = parse_policy(document).name
    old = Policy.objects.select_for_update().filter(name=name).first()
    policy, created = Policy.objects.update_or_create(name=name, defaults={"statement": document["statement"]})
    forget(None)
    audit(
        actor=actor,
        action="auth:CreatePolicy" if created else "auth:UpdatePolicy",
        arn=policy.arn,
        before=old.document if old else None,
        after=policy.document,
        reason=reason,
        request=request,
    )
    return policy


@transaction.atomic
def policy_delete(*, actor: Actor, policy: Policy, reason: str = "", request: Any = None) -> None:
    """Remove a policy from everybody."""
    before = policy.document
    audit(actor=actor, action="auth:DeletePolicy", arn=policy.arn, before=before, reason=reason, request=request)
    policy.delete()
    forget(None)


@transaction.atomic
def policy_attach(
    *,
    actor: Actor,
    policy: Policy,
    user: User | None = None,
    group: Group | None = None,
    reason: str = "",
    request: Any = None,
) -> bool:
    """Give a policy to one user or to one group; false if they had it."""
    holder = _holder(user, group)
    _, created = Attachment.objects.get_or_create(policy=policy, user=user, group=group)
    forget(user)
    if created:
        after = {"to": holder.arn}
        audit(actor=actor, action="auth:AttachPolicy", arn=policy.arn, after=after, reason=reason, request=request)
    return created


@transaction.atomic
def policy_detach(
    *,
    actor: Actor,
    policy: Policy,
    user: User | None = None,
    group: Group | None = None,
    reason: str = "",
    request: Any = None,
) -> bool:
    """Take a policy from one user or one group; false if they didn't have it."""
    holder = _holder(user, group)
    removed, _ = Attachment.objects.filter(policy=policy, user=user, group=group).delete()
    forget(user)
    if removed:
        before = {"from": holder.arn}
        audit(actor=actor, action="auth:DetachPolicy", arn=policy.arn, before=before, reason=reason, request=request)
    return bool(removed)


def _holder(user: User | None, group: Group | None) -> User | Group:
    holder = user or group
    if holder is None or (user and group):
        raise Invalid("a policy is attached to one user or to one group", field="user")
    return holder


# --- access keys ------------------------------------------------------------------------------------------------------


@transaction.atomic
def key_create(
    *,
    actor: Actor,
    user: User,
    description: str = "",
    expires_at: datetime | None = None,
    key_id: str = "",
    secret: str = "",
    reason: str = "",
    request: Any = None,
) -> IssuedKey:
    """A new access key; its secret is in the answer and nowhere else. An id and a secret of one's own may be given."""
    key_id, secret = credentials.pair(key_id, secret)
    try:
        with transaction.atomic():
            key = AccessKey.objects.create(
                key_id=key_id,
                user=user,
                secret_hash=credentials.hashed(secret),
                description=description[:200],
                expires_at=expires_at,
            )
    except IntegrityError as error:
        raise Conflict(f"there is an access key '{key_id}' already") from error
    after = {"key_id": key_id, "description": description, "expires_at": expires_at and expires_at.isoformat()}
    audit(actor=actor, action="auth:CreateCredentials", arn=user.arn, after=after, reason=reason, request=request)
    return IssuedKey(key, secret)


@transaction.atomic
def key_disable(*, actor: Actor, key: AccessKey, reason: str = "", request: Any = None) -> bool:
    """Make a key useless for good; false if it was."""
    changed = AccessKey.objects.filter(pk=key.pk, disabled_at=None).update(disabled_at=timezone.now()) == 1
    if changed:
        before = {"key_id": key.key_id}
        arn = key.user.arn
        audit(actor=actor, action="auth:DeleteCredentials", arn=arn, before=before, reason=reason, request=request)
    return changed


def key_check(*, key_id: str, secret: str, now: datetime | None = None) -> AccessKey | None:
    """The key if id and secret belong together and it still opens something, else None; one query.

    Wrong id, wrong secret, expired and disabled take the same time and give the same answer.
    """
    now = now or timezone.now()
    key = _find_key(key_id)
    matches = credentials.matches(secret, key.secret_hash if key else credentials.NO_HASH)
    if key is None or not matches or not key.is_usable(now):
        return None
    _note_use(key, now)
    key.user.acting_key_id = key.key_id
    return key


def _find_key(key_id: str) -> AccessKey | None:
    if not credentials.is_key_id(key_id):
        return None
    key: AccessKey | None = AccessKey.objects.select_related("user").filter(key_id=key_id).first()
    return key


def _note_use(key: AccessKey, now: datetime) -> None:
    """Write down the last use at most once a minute: reading must not become writing."""
    stale = now - NOTE_USE_EVERY
    if key.last_used_at is None or key.last_used_at < stale:
        AccessKey.objects.touch(key, now=now, older_than=stale)


def keys_of(user: User) -> Sequence[AccessKey]:
    """A user's keys, newest first; without secrets, which nobody has."""
    return list(AccessKey.objects.filter(user=user).order_by("-created_at"))
