"""The tables of the audit: its events, the chain's head, what was sealed, and how often attempts were refused."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from django.db import models
from django.db.models import Q

from audit.querysets import AppendOnly, AuditEventQuerySet

SUBJECT_LENGTH = 600
FIRST_DIGEST = "0" * 64
"""What stands before the digest of the first event."""


class AuditChain(models.Model):
    """One row: the chain's head, and how far it has been read again. Who appends holds its lock.

    `check_*` is the reading that goes on, `whole_*` the last one that came to the head, `wrong` what one found.
    """

    number = models.BigIntegerField(default=0)
    digest = models.CharField(max_length=64, default=FIRST_DIGEST)
    at = models.DateTimeField(null=True)
    check_number = models.BigIntegerField(default=0)
    check_digest = models.CharField(max_length=64, default=FIRST_DIGEST)
    check_began_at = models.DateTimeField(null=True)
    whole_number = models.BigIntegerField(default=0)
    whole_at = models.DateTimeField(null=True)
    wrong = models.CharField(max_length=300, blank=True)

    class Meta:
        db_table = "rbac_auditchain"


class AuditCheckpoint(models.Model):
    """Events that were sealed: they stand in a file, and the chain goes on behind them. Written once."""

    number = models.BigIntegerField(unique=True, help_text="the last event that is in the file")
    digest = models.CharField(max_length=64, help_text="its digest")
    first = models.BigIntegerField(help_text="the first event that is in the file")
    previous = models.CharField(max_length=64, help_text="the digest before it")
    file = models.CharField(max_length=1000)
    file_digest = models.CharField(max_length=64, help_text="SHA-256 of the file")
    sealed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "rbac_auditcheckpoint"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write a new one; a written one is refused."""
        if not self._state.adding:
            raise AppendOnly("checkpoints of the audit can't be changed")
        super().save(*args, **{**kwargs, "force_insert": True})


class RefusalCount(models.Model):
    """How often somebody was refused in a window of time: a user by action and resource, strangers by kind and network.

    `key` is a digest of the four, which may be longer than an index takes. `told`: how many of them events tell of.
    """

    since = models.DateTimeField()
    key = models.CharField(max_length=64)
    actor = models.CharField(max_length=128, blank=True)
    action = models.CharField(max_length=64)
    arn = models.CharField(max_length=1400, blank=True)
    network = models.CharField(max_length=64, blank=True)
    times = models.PositiveIntegerField(default=1)
    told = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField()

    class Meta:
        db_table = "rbac_refusalcount"
        constraints = (models.UniqueConstraint(fields=("since", "actor", "key"), name="refusals_counted_once"),)


class AuditEvent(models.Model):
    """One change, or refused attempt: who did what to which resource, and why. Written once, never changed.

    `actor` is a user's name, `system:<part>` for our own processes (no user's name has a colon). It is text and not a
    reference, so that the record outlives the user. `number` and `digest` are the row's place in the chain, which it
    gets shortly after it was committed (audit/chain.py). `times`: how many refused attempts the row tells of. `verb`
    (audit/verbs.py) and `subject` are blank for what was refused, and where an earlier version wrote the row.
    """

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.CharField(max_length=128, blank=True)
    key_id = models.CharField(max_length=40, blank=True)
    action = models.CharField(max_length=64)
    arn = models.CharField(max_length=1400)
    verb = models.CharField(max_length=20, blank=True, db_default="", default="")
    subject = models.CharField(max_length=SUBJECT_LENGTH, blank=True, db_default="", default="")
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    reason = models.CharField(max_length=1000, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)
    refused = models.BooleanField(default=False, db_default=False)
    times = models.PositiveIntegerField(default=1, db_default=1)
    number = models.BigIntegerField(null=True, unique=True)
    digest = models.CharField(max_length=64, blank=True)

    objects: ClassVar[Any] = AuditEventQuerySet.as_manager()

    class Meta:
        db_table = "rbac_auditevent"
        ordering = ("-pk",)
        indexes = (
            models.Index(fields=("arn", "-id"), name="audit_by_resource"),
            models.Index(fields=("actor", "-id"), name="audit_by_actor"),
            models.Index(fields=("-at", "-id"), name="audit_by_time"),
            models.Index(fields=("actor", "-at", "-id"), name="audit_of_actor_by_time"),
            models.Index(fields=("arn", "-at", "-id"), name="audit_of_arn_by_time"),
            models.Index(fields=("action", "-at", "-id"), name="audit_of_action_by_time"),
            models.Index(fields=("subject", "-id"), name="audit_by_subject"),
            models.Index(fields=("-at", "-id"), condition=Q(refused=True), name="audit_refused_by_time"),
            models.Index(fields=("id",), condition=Q(number=None), name="audit_not_chained"),
        )

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor} {self.action} {self.arn}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write a new event; a written one is refused."""
        if not self._state.adding:
            raise AppendOnly("audit events can't be changed")
        super().save(*args, **{**kwargs, "force_insert": True})

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refused."""
        raise AppendOnly("audit events can't be deleted")
