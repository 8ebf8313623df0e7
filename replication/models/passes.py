"""Passes of rules: what somebody asked for, how far it is, how it ended, and the rows of its report."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import models
from django.db.models import Q

from core.replicating.passes import PassKind, PassState, What
from db import clock
from db.fields import ExactTextField
from replication.models.rule import Link, Rule

KEPT = timedelta(days=30)
"""So long a pass that has ended is kept, with its report."""


class Pass(models.Model):
    """One look through what a rule copies, to a link or to all. A dry run may be of a rule that is only thought of."""

    class Kind(models.TextChoices):
        RESYNC = PassKind.RESYNC.value
        DRY_RUN = PassKind.DRY_RUN.value

    class State(models.TextChoices):
        RUNNING = PassState.RUNNING.value
        COMPLETED = PassState.COMPLETED.value
        WITH_FAILURES = PassState.WITH_FAILURES.value
        NOTHING = PassState.NOTHING.value
        FAILED = PassState.FAILED.value
        CANCELED = PassState.CANCELED.value

    kind = models.CharField(max_length=16, choices=Kind.choices)
    rule = models.ForeignKey(Rule, models.CASCADE, null=True, related_name="passes", help_text="null: of a wish")
    link = models.ForeignKey(Link, models.CASCADE, null=True, related_name="passes", help_text="null: of all targets")
    wish = models.JSONField(null=True, help_text="the rule that somebody thinks of, as its API takes it")
    region = models.CharField(max_length=64, help_text="of the source: who serves it does the work")
    prefix = ExactTextField(blank=True, default="")
    older_than = models.DateTimeField(null=True, help_text="only objects that were last written before")
    what = models.CharField(max_length=16, choices=[(one.value, one.name) for one in What], default=What.MISSING.value)
    who = models.CharField(max_length=200)
    state = models.CharField(max_length=32, choices=State.choices, default=State.RUNNING)
    message = ExactTextField(blank=True, default="", help_text="how it ended, or why it does not go on")
    error_since = models.DateTimeField(null=True, help_text="a store has refused us since then")
    began_at = models.DateTimeField()
    read_at = models.DateTimeField(null=True, help_text="when every stretch had been read")
    ended_at = models.DateTimeField(null=True)
    total = models.BigIntegerField(null=True, help_text="objects at the source, estimated; null: nobody knows")
    actions = models.JSONField(default=dict, help_text="core's Actions")
    looked_at = models.BigIntegerField(default=0, help_text="objects of the source that it wants, of all targets")
    looked_at_bytes = models.BigIntegerField(default=0)
    noted = models.BigIntegerField(default=0, help_text="objects that it gave to the link")
    noted_bytes = models.BigIntegerField(default=0)
    copied = models.BigIntegerField(default=0, help_text="of these, those that were sent")
    copied_bytes = models.BigIntegerField(default=0)
    found_equal = models.BigIntegerField(default=0, help_text="of these, those that were there when their turn came")
    gone = models.BigIntegerField(default=0, help_text="of these, those that the source had no more")
    failed = models.BigIntegerField(default=0, help_text="of these, those that could not be copied")
    waiting = models.BigIntegerField(default=0, help_text="of these, those that had not ended at the last look")
    rows = models.BigIntegerField(default=0, help_text="of the report")
    more_rows = models.BooleanField(default=False, help_text="there was more to report than is kept")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["link"], condition=Q(ended_at=None, kind=PassKind.RESYNC.value), name="replication_resync_once"
            ),
            models.UniqueConstraint(
                fields=["rule"],
                condition=Q(ended_at=None, kind=PassKind.DRY_RUN.value),
                name="replication_dry_run_once",
            ),
        ]
        indexes = [models.Index(fields=["rule", "-id"], name="replication_pass_newest")]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"

    @property
    def is_dry(self) -> bool:
        """Whether nothing is written."""
        return self.kind == PassKind.DRY_RUN

    @property
    def audit_name(self) -> str:
        """The subject of events about it."""
        of = self.link.audit_name if self.link else self.rule.audit_name if self.rule else "replication"
        return f"{of}/passes/{self.pk}"

    @classmethod
    def forget_ended(cls) -> None:
        """Those that ended long ago go with their reports, some at a time."""
        old: Any = cls.objects.filter(ended_at__lt=clock.now() - KEPT).order_by("pk").values_list("pk", flat=True)
        for model in (PassRows, PassStretch):
            model.objects.filter(of__in=list(old[:20])).delete()
        cls.objects.filter(pk__in=list(old[:20])).delete()


class PassStretch(models.Model):
    """A stretch of keys of a pass, and how far it is: it goes on strictly after `after`."""

    of = models.ForeignKey(Pass, models.CASCADE, related_name="stretches")
    low = models.BinaryField(help_text="keys after this one")
    high = models.BinaryField(null=True, help_text="up to this one, with it; null: to the end")
    after = models.BinaryField(help_text="keys up to this one are done with")
    done = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["of", "low"], name="replication_pass_stretch_once")]
        ordering = ["of", "low"]


class PassRows(models.Model):
    """Some rows of a pass's report, as core packs them: written with the checkpoint that counts them."""

    of = models.ForeignKey(Pass, models.CASCADE, related_name="parts")
    number = models.IntegerField(help_text="of rows")
    rows = models.BinaryField()

    class Meta:
        ordering = ["of", "pk"]
