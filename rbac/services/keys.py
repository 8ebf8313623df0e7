"""Access keys: credentials of programs. A secret is in the answer that makes the key, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from audit.record import Actor, audit
from audit.verbs import Verb
from core.errors import Conflict, Invalid, NotFound
from rbac import key_secrets
from rbac.key_secrets import IssuedKey
from rbac.models import AccessKey, User
from rbac.services.administrators import administrator_kept
from rbac.services.rows import locked

NOTE_USE_EVERY = timedelta(minutes=1)
OVERLAP = timedelta(hours=24)
"""How long a key that is rotated goes on working, unless told."""
LONGEST_OVERLAP = timedelta(days=30)


def key_find(user: User, key_id: str) -> AccessKey:
    """The key of that id if it is this user's, else NotFound."""
    key: AccessKey | None = AccessKey.objects.select_related("user").filter(user=user, key_id=key_id).first()
    if key is None:
        raise NotFound(f"{user.username} has no access key '{key_id[:80]}'")
    return key


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
) -> IssuedKey:
    """A new access key; its secret is in the answer and nowhere else. An id and a secret of one's own may be given."""
    key_id, secret = key_secrets.pair(key_id, secret)
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid("a new key can't expire in the past", field="expires_at", hint="Use a time in the future")
    locked(user)
    try:
        with transaction.atomic():
            key = AccessKey.objects.create(
                key_id=key_id,
                user=user,
                secret_hash=key_secrets.hashed(secret),
                description=description[:200],
                expires_at=expires_at,
            )
    except IntegrityError as error:
        raise Conflict(f"there is an access key '{key_id}' already", field="access_key_id") from error
    after = {"key_id": key_id, "description": description, "expires_at": expires_at and expires_at.isoformat()}
    audit(actor=actor, right=("auth:CreateCredentials", user.arn), verb=Verb.CREATE_KEY, after=after, reason=reason)
    return IssuedKey(key, secret)


@transaction.atomic
def key_rotate(
    *, actor: Actor, key: AccessKey, overlap: timedelta = OVERLAP, expires_at: datetime | None = None, reason: str = ""
) -> IssuedKey:
    """A new key in place of a usable one, which works for `overlap` longer at most; `key` is told when it ends.

    Unless it is told, the new key is good for as long as the old one was made for. Invalid, Conflict.
    """
    if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
        days = LONGEST_OVERLAP.days
        raise Invalid(f"an overlap is from 0 seconds to {days} days", field="overlap_seconds")
    now = timezone.now()
    old = AccessKey.objects.select_for_update(of=("self",)).select_related("user").filter(pk=key.pk).first()
    if old is None or not old.is_usable(now):
        raise Conflict(f"access key '{key.key_id}' no longer works", hint="Create a new one instead")
    ends = min(now + overlap, old.expires_at or now + overlap)
    issued = key_create(
        actor=actor,
        user=old.user,
        description=old.description,
        expires_at=expires_at or (old.expires_at and now + (old.expires_at - old.created_at)),
        reason=reason or f"instead of {old.key_id}",
    )
    AccessKey.objects.filter(pk=old.pk).update(expires_at=ends)
    _record_end(actor, old, {"expires_at": ends.isoformat()}, reason or f"{issued.key.key_id} instead")
    key.expires_at = ends
    return issued


@administrator_kept()
def key_disable(*, actor: Actor, key: AccessKey, reason: str = "") -> bool:
    """Make a key useless for good; false if it was. It is still listed."""
    now = timezone.now()
    changed: bool = AccessKey.objects.filter(pk=key.pk, disabled_at=None).update(disabled_at=now) == 1
    if changed:
        key.disabled_at = now
        _record_end(actor, key, {"disabled_at": now.isoformat()}, reason)
    return changed


@administrator_kept()
def key_delete(*, actor: Actor, key: AccessKey, reason: str = "") -> None:
    """Remove a key: it opens nothing any more and is listed nowhere."""
    _record_end(actor, key, None, reason)
    AccessKey.objects.filter(pk=key.pk).delete()


def _record_end(actor: Actor, key: AccessKey, after: dict[str, Any] | None, reason: str) -> None:
    before = {"key_id": key.key_id}
    after = before | after if after else None
    arn = key.user.arn
    audit(
        actor=actor,
        right=("auth:DeleteCredentials", arn),
        verb=Verb.DISABLE_KEY if after else Verb.DELETE_KEY,
        before=before,
        after=after,
        reason=reason,
    )


def key_check(*, key_id: str, secret: str, now: datetime | None = None) -> AccessKey | None:
    """The key if id and secret belong together and it still opens something, else None; one query.

    Wrong id, wrong secret, expired and disabled take the same time and give the same answer.
    """
    now = now or timezone.now()
    key = _find_key(key_id)
    matches = key_secrets.matches(secret, key.secret_hash if key else key_secrets.NO_HASH)
    if key is None or not matches or not key.is_usable(now):
        return None
    _note_use(key, now)
    key.user.acting_key_id = key.key_id
    return key


def _find_key(key_id: str) -> AccessKey | None:
    if not key_secrets.is_key_id(key_id):
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
