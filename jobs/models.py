"""Work that recurs, who does it, and what workers said of it."""

from __future__ import annotations

from django.db import models

from db.fields import ExactTextField
from jobs.querysets import DutyQuerySet


class Duty(models.Model):
    """Work that recurs. A message is only a wake-up: whoever claims the row, by the database's clock, does the work."""

    kind = models.CharField(max_length=16, help_text="by the name that its app registers it with (jobs/kinds.py)")
    subject = models.BigIntegerField(help_text="what it is about: a key of its app's, by the kind")
    queue = models.CharField(max_length=100)
    due_at = models.DateTimeField()
    woken_at = models.DateTimeField(null=True, help_text="when the last wake-up message was sent")
    holder = models.CharField(max_length=64, blank=True)
    until = models.DateTimeField(null=True)
    attempt = models.BigIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    succeeded_at = models.DateTimeField(null=True)
    failures = models.IntegerField(default=0, help_text="in a row")
    outcome = ExactTextField(blank=True)
    refusal = models.CharField(
        max_length=32,
        default="",
        db_default="",
        blank=True,
        help_text="why the last try failed, where no later one helps by itself: a code of core/errors.py",
    )

    objects = DutyQuerySet.as_manager()

    class Meta:
        db_table = "mirrors_duty"
        constraints = [models.UniqueConstraint(fields=["kind", "subject"], name="duty_once")]
        indexes = [models.Index(fields=["due_at"], name="duty_due")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class JobLine(models.Model):
    """A line that a worker said of a duty; of each duty the last ones."""

    # Without a constraint: the version before, which deletes duties, does not know of these rows.
    duty = models.ForeignKey(Duty, models.CASCADE, related_name="lines", db_constraint=False)
    at = models.DateTimeField()
    level = models.CharField(max_length=16)
    worker = models.CharField(max_length=64)
    text = ExactTextField()

    class Meta:
        db_table = "mirrors_jobline"

    def __str__(self) -> str:
        return f"{self.level} {self.text[:80]}"


class Worker(models.Model):
    """A process that does the tasks of a queue, as it says itself every few seconds. `load`: of its machine, over a
    minute; `spark`: where its Spark is, with why that can't be reached."""

    name = models.CharField(max_length=64, unique=True, help_text="as holder of duties")
    queue = models.CharField(max_length=100)
    host = models.CharField(max_length=64)
    pid = models.IntegerField()
    slots = models.IntegerField(help_text="tasks that it does at a time")
    load = models.FloatField()
    cores = models.IntegerField()
    spark = models.CharField(max_length=200, blank=True)
    spark_trouble = ExactTextField(blank=True)
    started_at = models.DateTimeField()
    heard_at = models.DateTimeField()
    lost_at = models.DateTimeField(null=True, help_text="when it was last heard of, once a controller missed it")

    def __str__(self) -> str:
        return self.name


class Deployment(models.Model):
    """A deployment on this database, as its controllers say it every few seconds. What it is told is its `identity`:
    two of one region that are told otherwise are two rows. `organization` and `key` are digests, and have to be the
    same in all of them."""

    identity = models.CharField(max_length=64, unique=True)
    region = models.CharField(max_length=100)
    serves = models.JSONField(default=list, help_text="regions whose mirrors it works for")
    organization = models.CharField(max_length=64, help_text="digest of organization_id")
    key = models.CharField(max_length=64, help_text="digest of a key that follows from auth.encrypt.secret_key")
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.region
