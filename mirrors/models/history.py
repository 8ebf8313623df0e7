"""What happened to a mirror: moves of its branches, breaches of its target, measures; what stores failed to copy."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from mirrors.models.mirror import Mirror
from mirrors.models.source import Repository


class LagBreach(models.Model):
    """A time in which a branch was later than its mirror's target; open while it is."""

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="breaches")
    branch = models.CharField(max_length=256)
    began_at = models.DateTimeField(help_text="when the oldest commit that is not mirrored became too old")
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["mirror", "branch"], condition=Q(ended_at=None), name="breach_open_once")
        ]
        indexes = [models.Index(fields=["mirror", "branch", "-began_at"], name="breach_latest")]


class Promotion(models.Model):
    """One move of a mirror's branch or tag, as it was carried out and read back, or found to be somebody else's."""

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="promotions")
    branch = models.CharField(max_length=256, help_text="its name; that of a tag with `is_tag`")
    is_tag = models.BooleanField(default=False, db_default=False)
    from_commit = models.CharField(max_length=64, blank=True)
    to_commit = models.CharField(max_length=64, blank=True, help_text="empty: the branch was deleted")
    why = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["mirror", "-at"], name="promotion_latest")]
        ordering = ["-at", "-pk"]


class Measure(models.Model):
    """What was measured of a mirror in five minutes or an hour. Null is what nobody knows; 0 is none."""

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="measures")
    minutes = models.SmallIntegerField(help_text="its length: 5 or 60")
    began_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    settled = models.BooleanField(default=False, db_default=False, help_text="over for long enough to be left alone")
    read_at = models.DateTimeField(null=True, help_text="when lag and backlog were last read in it")
    lag_seconds = models.FloatField(null=True, help_text="the worst that was read, of any branch")
    backlog = models.BigIntegerField(null=True, help_text="the most commits that branches lacked")
    backlog_last = models.BigIntegerField(null=True, help_text="how many that were at the last reading")
    missing = models.BigIntegerField(null=True, help_text="the most things that were waited for")
    promoted = models.BigIntegerField(null=True, help_text="commits that became the head of a branch")
    checks = models.BigIntegerField(null=True, help_text="runs that began")
    objects_checked = models.BigIntegerField(default=0, db_default=0)
    bytes_checked = models.BigIntegerField(default=0, db_default=0)
    commits_seen = models.BigIntegerField(null=True, help_text="commits that were seen at the source first")
    commits_mirrored = models.BigIntegerField(null=True, help_text="commits that branches of the mirror reached")
    objects_new = models.BigIntegerField(default=0, db_default=0, help_text="those that no earlier check covered")
    bytes_new = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["mirror", "minutes", "began_at"], name="measure_once")]
        indexes = [models.Index(fields=["mirror"], condition=Q(settled=False), name="measure_unsettled")]
        ordering = ["began_at"]


class ReplicationFailure(models.Model):
    """The last time that a source's store told that it failed to copy an object of the namespace, kept for a day."""

    source = models.ForeignKey(Repository, models.CASCADE, related_name="replication_failures")
    address_hash = models.CharField(max_length=32, help_text="of its address below the namespace, as a blocker's")
    bucket = models.CharField(max_length=128, blank=True, help_text="to which it was to go; empty: it was not told")
    reason = models.CharField(max_length=128, blank=True, help_text="the store's own word; empty: it gave none")
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "address_hash", "bucket"], name="replication_failure_once")
        ]
        indexes = [models.Index(fields=["at"], name="replication_failure_age")]
