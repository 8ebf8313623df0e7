"""The tables beside the audit's events: the chain's head, what was sealed, and how often attempts were refused."""

from __future__ import annotations

from typing import Any

from django.db import models

from rbac.exceptions import AppendOnly

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


class AuditCheckpoint(models.Model):
    """Events that were sealed: they stand in a file, and the chain goes on behind them. Written once."""

    number = models.BigIntegerField(unique=True, help_text="the last event that is in the file")
    digest = models.CharField(max_length=64, help_text="its digest")
    first = models.BigIntegerField(help_text="the first event that is in the file")
    previous = models.CharField(max_length=64, help_text="the digest before it")
    file = models.CharField(max_length=1000)
    file_digest = models.CharField(max_length=64, help_text="SHA-256 of the file")
    sealed_at = models.DateTimeField(auto_now_add=True)

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
        constraints = (models.UniqueConstraint(fields=("since", "actor", "key"), name="refusals_counted_once"),)
