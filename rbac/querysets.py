"""Questions that are asked of the access tables more than once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib.auth.base_user import BaseUserManager
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

if TYPE_CHECKING:
    from audit.models import AuditEvent  # noqa: F401
    from rbac.models import AccessKey, Guesses, User


class UserManager(BaseUserManager["User"]):
    """Users by name, whatever the case that it is typed in."""

    def get_by_natural_key(self, username: str | None) -> User:
        """The user of that name; "Ann" and "ann" are one person. Databases fold other letters to ASCII ones: not we."""
        if not (username or "").isascii():
            raise self.model.DoesNotExist
        return self.get(username__iexact=username)


class AttachmentQuerySet(models.QuerySet["Attachment"]):
    """Which policy hangs on whom."""

    def reaching(self, user: User) -> AttachmentQuerySet:
        """Attachments that apply to a user, on their own name or through a group; one query with the policies."""
        mine = Q(user=user) | Q(group__memberships__user=user)
        return self.filter(mine).select_related("policy", "group").order_by("policy__name", "pk")


class AccessKeyQuerySet(models.QuerySet["AccessKey"]):
    """Access keys by whether they still open anything."""

    def active(self, now: datetime) -> AccessKeyQuerySet:
        """Keys that are neither disabled nor expired, of users who may sign in."""
        unexpired = Q(expires_at=None) | Q(expires_at__gt=now)
        return self.filter(unexpired, disabled_at=None, user__is_active=True)

    def touch(self, key: AccessKey, *, now: datetime, older_than: datetime) -> bool:
        """Note that a key was used, unless that was noted after `older_than`; true if a row changed."""
        stale = Q(last_used_at=None) | Q(last_used_at__lt=older_than)
        return self.filter(stale, pk=key.pk).update(last_used_at=now) == 1


KEYS_LAST = timedelta(hours=24)


class KeyedCallQuerySet(models.QuerySet["KeyedCall"]):
    """Calls that came with a key, by their age."""

    def expired(self) -> KeyedCallQuerySet:
        """Those whose key means nothing any more, by the database's clock."""
        return self.filter(begun_at__lt=Now() - KEYS_LAST)


class SessionQuerySet(models.QuerySet["Session"]):
    """Who is signed in, and where."""

    def open_of(self, user: User, now: datetime) -> SessionQuerySet:
        """A user's sessions that have not ended, the one that was seen last first."""
        return self.filter(user=user, expire_date__gt=now).order_by("-seen_at", "session_key")

    def expired(self, now: datetime) -> SessionQuerySet:
        """Those that nobody can use any more."""
        return self.filter(expire_date__lte=now)


class GuessesQuerySet(models.QuerySet["Guesses"]):
    """Attempts, by where they came from."""

    def move(self, seen: Guesses, **changes: Any) -> bool:
        """Change a place's count unless somebody else did since it was seen."""
        return self.filter(pk=seen.pk, attempts=seen.attempts, wait_until=seen.wait_until).update(**changes) == 1
