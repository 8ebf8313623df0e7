"""What rules that follow deletions know: what of a target is the link's own, and deletions that wait for somebody, and
what was deleted where rules lead both ways."""

from __future__ import annotations

from django.db import models

from core.replicating.states import ApprovalState
from db.fields import ExactTextField
from replication.models.ledger import Shard
from replication.models.rule import Link


class ShardManifest(models.Model):
    """Which file in the state place lists what a link has, by what it copied or saw to be equal, of a stretch of keys.

    A file is written whole under a name that nobody else ever uses, then this row names it, then the old one goes."""

    link = models.ForeignKey(Link, models.CASCADE, related_name="manifests")
    shard = models.ForeignKey(Shard, models.CASCADE, related_name="manifests")
    generation = models.BigIntegerField(default=0, help_text="0: nothing was listed yet, and there is no file")
    file = models.CharField(
        max_length=255,
        blank=True,
        default="",
        help_text="its name; of a stretch that was cut off another one's: that one's",
    )
    writing = models.CharField(
        max_length=255, blank=True, default="", help_text="the file that is being written; empty: none"
    )
    objects_listed = models.BigIntegerField(default=0)
    foreign_objects = models.BigIntegerField(default=0, help_text="at the target alone, and not the link's, last time")
    foreign_seen = models.BigIntegerField(default=0, help_text="by the look that goes on")
    foreign_keys = models.JSONField(default=list, db_default=[], help_text="the first of them, last time")
    foreign_keys_seen = models.JSONField(default=list, db_default=[], help_text="the first, by the look that goes on")
    shown_objects = models.BigIntegerField(
        default=0, db_default=0, help_text="where all versions are copied: so many keys the target showed, last time"
    )
    shown_seen = models.BigIntegerField(default=0, db_default=0, help_text="by the look that goes on")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["link", "shard"], name="replication_manifest_once")]
        ordering = ["link", "shard"]


class Arrived(models.Model):
    """An object that a link has copied, or seen to be equal, since the manifest of its stretch was written. `etag` is
    the target's; empty: the object is the link's no more. Of one key, and version, the last row counts. `source`: of
    rules that lead both ways, the mark of what it is a copy of. Where all versions are copied one with `of` "hides"
    says that a delete marker of the source, `version`, is to hide nothing."""

    link = models.ForeignKey(Link, models.CASCADE, related_name="arrived")
    key = models.BinaryField()
    size = models.BigIntegerField()
    etag = ExactTextField(blank=True)
    source = ExactTextField(blank=True, default="", db_default="")
    version = ExactTextField(blank=True, default="", db_default="", help_text="where all are copied: the target's id")
    of = ExactTextField(blank=True, default="", db_default="", help_text="of which version of the source it is a copy")

    class Meta:
        indexes = [models.Index(fields=["link", "key"], name="replication_arrived_key")]
        ordering = ["pk"]


class Tombstone(models.Model):
    """What was deleted at a place that rules lead to and from. Whoever leads to it brings neither that nor
    what is older; whoever leads from it deletes that."""

    place = models.CharField(max_length=32, help_text="names the place: the same for all rules that begin or end there")
    key = models.BinaryField()
    since = models.CharField(max_length=8, help_text="core's Since: what is known of the place since")
    at = models.BigIntegerField(help_text="when what was deleted had been written first, in ms since 1970")
    region = models.CharField(max_length=64, help_text="where that was")
    bucket = models.CharField(max_length=16, help_text="a mark of the bucket there")
    size = models.BigIntegerField()
    etag = ExactTextField(blank=True)
    found_at = models.DateTimeField(help_text="when it was last seen to be gone")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["place", "key"], name="replication_tombstone_once")]
        indexes = [models.Index(fields=["found_at"], name="replication_tombstone_found")]
        ordering = ["place", "key"]


class Overwritten(models.Model):
    """An object that somebody wrote at a link's target, in a bucket without versions, and a newer one has replaced."""

    link = models.ForeignKey(Link, models.CASCADE, related_name="overwritten", db_index=False)
    key = models.BinaryField()
    overwritten_at = models.DateTimeField()
    written_at = models.DateTimeField(help_text="as its store told")
    size = models.BigIntegerField()
    etag = ExactTextField(blank=True)

    class Meta:
        indexes = [models.Index(fields=["link", "id"], name="replication_overwritten_of")]
        ordering = ["-pk"]

    @property
    def name(self) -> str:
        """The key as text."""
        return bytes(self.key).decode("utf-8", "backslashreplace")


class Approval(models.Model):
    """Deletions of a link, more at once than its rule does by itself: none of them is done before somebody approves."""

    class State(models.TextChoices):
        WAITING = ApprovalState.WAITING.value
        APPROVED = ApprovalState.APPROVED.value
        REJECTED = ApprovalState.REJECTED.value
        EXPIRED = ApprovalState.EXPIRED.value

    link = models.ForeignKey(Link, models.CASCADE, related_name="approvals")
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    number = models.BigIntegerField(help_text="of objects, as they were judged")
    bytes = models.BigIntegerField()
    of = models.BigIntegerField(help_text="so many the link had at its target")
    lately = models.BigIntegerField(
        default=0, db_default=0, help_text="so many were let through without an approval in the 24 hours before"
    )
    more = models.BooleanField(default=False, help_text="there were more than rows are kept of")
    first_keys = models.JSONField(default=list, help_text="the first 100 of them")
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["link"], condition=models.Q(state="waiting"), name="replication_one_approval_waits"
            )
        ]
        ordering = ["-pk"]
