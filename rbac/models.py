"""Users, groups, policies, who has which, access keys, sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.sessions.base_session import AbstractBaseSession
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

from core.notifications.expiry import told_from
from rbac.querysets import (
    AccessKeyQuerySet,
    AttachmentQuerySet,
    GuessesQuerySet,
    KeyedCallQuerySet,
    SessionQuerySet,
    UserManager,
)

# A name goes into ARNs and, through ${user}, into patterns: no wildcard, separator or white space may be in it.
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.@+-]{0,127}\Z"
name_validator = RegexValidator(
    NAME_PATTERN, "Use letters, digits and _ . @ + - (at most 128, beginning with a letter or digit)."
)


class User(AbstractBaseUser):
    """A person or a service. `username` is what `${user}` in a policy stands for."""

    username = models.CharField(max_length=128, unique=True, validators=[name_validator])
    email = models.EmailField(blank=True)
    friendly_name = models.CharField(max_length=200, blank=True, default="", db_default="")
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    lakefs_region = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="its lakeFS lets them in; blank: none does",
    )
    lakefs_creation_date = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="of the user there, in seconds since 1970: a name that is given anew is somebody else's",
    )

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "username"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    acting_key_id = ""
    """The access key by which this object was signed in, for the audit; no column."""
    refused: Sequence[tuple[str, str]] = ()
    """What this object was refused: action and ARN, for the audit; no column."""

    given_policies: tuple[Any, ...] | None = None
    """The policies that an authorization service gave for this request, in place of our own; no column."""

    class Meta:
        ordering = ("username",)
        constraints = (models.UniqueConstraint(Lower("username"), name="user_name_once_in_any_case"),)

    @property
    def arn(self) -> str:
        """The user as a resource of `auth:*` actions."""
        return f"arn:lakefs:auth:::user/{self.username}"


class Group(models.Model):
    """Users who share policies."""

    name = models.CharField(max_length=128, unique=True, validators=[name_validator])
    description = models.CharField(max_length=200, blank=True)
    members = models.ManyToManyField(User, through="Membership", related_name="rbac_groups")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def arn(self) -> str:
        """The group as a resource of `auth:*` actions."""
        return f"arn:lakefs:auth:::group/{self.name}"


class Membership(models.Model):
    """One user in one group."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="memberships")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "group"), name="member_once"),)


class Policy(models.Model):
    """A named list of statements in lakeFS's JSON form, checked by `core.access.policies` before it is stored."""

    name = models.CharField(max_length=128, unique=True, validators=[name_validator])
    statement = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("name",)
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return self.name

    @property
    def arn(self) -> str:
        """The policy as a resource of `auth:*` actions."""
        return f"arn:lakefs:auth:::policy/{self.name}"

    @property
    def document(self) -> dict[str, Any]:
        """The policy as lakeFS writes it."""
        return {"id": self.name, "statement": self.statement}


class Attachment(models.Model):
    """A policy given to one user or to one group."""

    policy = models.ForeignKey(Policy, on_delete=models.CASCADE, related_name="attachments")
    user = models.ForeignKey(User, null=True, blank=True, on_delete=models.CASCADE, related_name="attachments")
    group = models.ForeignKey(Group, null=True, blank=True, on_delete=models.CASCADE, related_name="attachments")
    created_at = models.DateTimeField(auto_now_add=True)

    objects: ClassVar[Any] = AttachmentQuerySet.as_manager()

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(user__isnull=False, group__isnull=True) | Q(user__isnull=True, group__isnull=False),
                name="attached_to_a_user_or_a_group",
            ),
            models.UniqueConstraint(fields=("policy", "user"), condition=Q(group=None), name="attached_to_user_once"),
            models.UniqueConstraint(fields=("policy", "group"), condition=Q(user=None), name="attached_to_group_once"),
        )


class AccessKey(models.Model):
    """Credentials of a program that acts for a user. The secret itself is shown once and never stored."""

    key_id = models.CharField(max_length=40, unique=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="access_keys")
    secret_hash = models.CharField(max_length=64)
    description = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    disabled_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[Any] = AccessKeyQuerySet.as_manager()

    class Meta:
        ordering = ("user", "created_at")

    def __str__(self) -> str:
        return self.key_id

    def is_usable(self, now: datetime) -> bool:
        """Whether the key opens anything at that time."""
        unexpired = self.expires_at is None or self.expires_at > now
        return unexpired and self.disabled_at is None and self.user.is_active

    @property
    def is_near_its_end(self) -> bool:
        """Whether it expires so soon that people are told."""
        begins = told_from(self.created_at, self.expires_at) if self.expires_at else None
        return begins is not None and begins <= timezone.now()


HANDLE_DIGITS = 16


class Session(AbstractBaseSession):
    """A browser that is signed in. `session_key` is a digest of what its cookie holds: the table opens nothing.

    `expire_date` is the end of its idle time or of its life, whichever is sooner; the row is gone when it is ended.
    """

    session_key = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="sessions")
    began_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    address = models.GenericIPAddressField(null=True)
    browser = models.CharField(max_length=300, help_text="the User-Agent that it sends")

    objects: ClassVar[Any] = SessionQuerySet.as_manager()

    @property
    def handle(self) -> str:
        """What it is called in lists and addresses."""
        return self.session_key[:HANDLE_DIGITS]


class Guesses(models.Model):
    """Attempts at one name or access key from one place, as `rbac/signin/brute_force.py` counts them."""

    place = models.CharField(max_length=64, primary_key=True, help_text="digest of the name and where they came from")
    attempts = models.PositiveIntegerField()
    wait_until = models.DateTimeField(null=True)
    forget_at = models.DateTimeField(db_index=True)

    objects: ClassVar[Any] = GuessesQuerySet.as_manager()


class KeyedCall(models.Model):
    """A call that came with an Idempotency-Key, and what it was answered. No status: nobody knows yet.

    No answer beside a status: it holds a secret, and is not kept.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="keyed_calls")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of method, address and body")
    begun_at = models.DateTimeField(db_index=True)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.TextField(null=True)

    objects: ClassVar[Any] = KeyedCallQuerySet.as_manager()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("user", "key"), name="key_claimed_once"),)
