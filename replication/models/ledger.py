"""The ledger of a rule: which stretches of keys are to be looked through, which keys somebody named, and which objects
are not at their target. An object that is there, as it is at the source, is never a row.

Keys are relative to their place, as UTF-8 bytes: so every database compares them as stores list them.
"""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from core.replicating.states import OpenKind, OpenStatus
from db.fields import ExactTextField
from replication.models.rule import Link, Rule
from replication.querysets import CountQuerySet, OpenQuerySet, ShardQuerySet


class Shard(models.Model):
    """A stretch of keys of a rule's place, and how far the look through it is: it goes on strictly after `after`."""

    rule = models.ForeignKey(Rule, models.CASCADE, related_name="shards")
    low = models.BinaryField(help_text="keys after this one")
    high = models.BinaryField(null=True, help_text="up to this one, with it; null: to the end")
    after = models.BinaryField(null=True, help_text="keys up to this one are done with; null: no look goes on")
    dirty = models.BooleanField(default=False, help_text="something in it lacks at a target, and is no row")
    due_at = models.DateTimeField(help_text="when it is looked through next")
    objects_seen = models.BigIntegerField(default=0, help_text="by the look that goes on, at the source")
    bytes_seen = models.BigIntegerField(default=0)
    objects_last = models.BigIntegerField(default=0, help_text="by the last look that came to its end")
    bytes_last = models.BigIntegerField(default=0)
    missed = models.BooleanField(default=False, help_text="the look that goes on could not note all that lacks")
    marks = models.JSONField(
        default=list,
        db_default=[],
        help_text="keys in order, some thousands apart, as it was looked through last: read side by side",
    )
    began_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True, help_text="when a look came to its end; null: not since all began")

    objects = ShardQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rule", "low"], name="replication_shard_once")]
        indexes = [models.Index(fields=["rule", "due_at"], name="replication_shard_due")]
        ordering = ["rule", "low"]


class Touched(models.Model):
    """A key of a rule's place that an event named: it is looked at before anything else, however often it was named."""

    rule = models.ForeignKey(Rule, models.CASCADE, related_name="touched")
    key = models.BinaryField()
    at = models.DateTimeField(help_text="when it was named last")
    beside = models.BooleanField(
        default=False, db_default=False, help_text="because of its tags or its lock, maybe of an older version"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rule", "key"], name="replication_touched_once")]
        ordering = ["pk"]


class OpenObject(models.Model):
    """An object that is not at a link's target as it is at the source, as far as it was seen."""

    class Status(models.TextChoices):
        PENDING = OpenStatus.PENDING.value
        FAILED = OpenStatus.FAILED.value
        SKIPPED = OpenStatus.SKIPPED.value
        WAITING = OpenStatus.WAITING.value
        DELETING = OpenStatus.DELETING.value

    class Kind(models.TextChoices):
        COPY = OpenKind.COPY.value
        DELETE = OpenKind.DELETE.value
        HIDE = OpenKind.HIDE.value
        PURGE = OpenKind.PURGE.value

    link = models.ForeignKey(Link, models.CASCADE, related_name="open_objects", db_index=False)
    key = models.BinaryField()
    size = models.BigIntegerField(help_text="at the source, as it was seen last; of a deletion: at the target")
    etag = ExactTextField(blank=True, help_text="the same; where all versions are copied, what names the chain")
    described = models.CharField(
        max_length=32, blank=True, default="", db_default="", help_text="names its description; empty: not known"
    )
    absent = models.BooleanField(
        default=False,
        db_default=False,
        help_text="the target had nothing there when this was noted, and nobody has tried it since",
    )
    of = ExactTextField(
        blank=True,
        default="",
        db_default="",
        help_text="of kind purge: of which version of the source that is a copy",
    )
    since = models.DateTimeField(help_text="when it was first seen to lack, or to be gone at the source")
    next_try = models.DateTimeField()
    attempts = models.IntegerField(default=0, help_text="that failed")
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.PENDING)
    code = models.CharField(max_length=48, blank=True, default="", help_text="why the last try failed: core's Code")
    detail = ExactTextField(blank=True, default="")
    version = ExactTextField(
        blank=True, default="", db_default="", help_text="which version the last try failed for, where all are copied"
    )
    of_pass = models.BigIntegerField(null=True, help_text="the pass that waits for it")
    again = models.BooleanField(default=False, db_default=False, help_text="it is sent even if the target has it")
    kind = models.CharField(max_length=16, choices=Kind.choices, default=Kind.COPY, db_default=Kind.COPY.value)
    doomed = ExactTextField(
        blank=True,
        default="",
        db_default="",
        help_text="of kind hide: which delete marker of the source; of kind purge: which version of the target",
    )
    approval = models.ForeignKey(
        "replication.Approval",
        models.SET_NULL,
        null=True,
        related_name="rows",
        help_text="which somebody has to give first; null: none, or the look that noted it has not ended",
    )
    not_before = models.DateTimeField(
        null=True, help_text="a deletion that got no answer may be carried out until then: nothing is written before"
    )
    begun = ExactTextField(
        blank=True,
        default="",
        db_default="",
        help_text="ETag of what was begun to be written, of rules that follow deletions; empty: nothing was",
    )

    objects = OpenQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["link", "key", "kind", "doomed"], name="replication_open_once_each")
        ]
        indexes = [
            models.Index(fields=["link", "next_try", "id"], name="replication_open_turn"),
            models.Index(fields=["link", "status", "since"], name="replication_open_oldest"),
            models.Index(fields=["link", "id"], name="replication_open_noted"),
            models.Index(fields=["link", "status", "id"], name="replication_open_status"),
            models.Index(fields=["link", "code", "id"], name="replication_open_code"),
            models.Index(fields=["of_pass"], condition=Q(of_pass__isnull=False), name="replication_open_of_pass"),
        ]

    @property
    def name(self) -> str:
        """The key as text."""
        return bytes(self.key).decode("utf-8", "backslashreplace")

    @property
    def due_at(self) -> datetime | None:
        """When it is tried next; None: not before it is let through."""
        return None if self.status == OpenStatus.WAITING.value else self.next_try

    @property
    def of_version(self) -> str:
        """Which version it is about, where all are copied."""
        return self.doomed or self.version

    @property
    def claimed(self) -> tuple[str, int, str, str]:
        """What it says is to be done: kind, size, ETag and description."""
        return self.kind, self.size, self.etag, self.described


class OpenCount(models.Model):
    """How many open objects a link has of a status and code: kept with the rows, so that nobody counts these."""

    link = models.ForeignKey(Link, models.CASCADE, related_name="counts")
    status = models.CharField(max_length=16, choices=OpenObject.Status.choices)
    code = models.CharField(max_length=48, blank=True)
    number = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)

    objects = CountQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["link", "status", "code"], name="replication_count_once")]
        ordering = ["link", "status", "code"]


class RetryRequest(models.Model):
    """That very many open objects of a link are to be tried again: it is carried out some at a time, by their keys."""

    link = models.ForeignKey(Link, models.CASCADE, related_name="retry_requests")
    code = models.CharField(max_length=48, blank=True, default="", help_text="only those with this code; empty: all")
    done_up_to = models.BigIntegerField(default=0, help_text="the row that was the last one to be made due")
    ends_at = models.BigIntegerField(help_text="the last row that there was when somebody asked")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["link", "code"], name="replication_retry_once")]
        ordering = ["pk"]
