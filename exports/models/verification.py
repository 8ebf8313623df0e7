"""What was verified of exports: comparisons of a destination with its commit, and what drifted."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from db.fields import ExactTextField
from exports.models.export import Export
from exports.querysets import VerificationQuerySet


class ExportVerification(models.Model):
    """One comparison of a destination with the commit of the last success. It writes nothing there."""

    class Outcome(models.TextChoices):
        EQUAL = "equal"
        DRIFTED = "drifted"
        OUTDATED = "outdated", "a run began meanwhile"
        FAILED = "failed", "it could not be told"

    export = models.ForeignKey(Export, models.CASCADE, related_name="verifications")
    ref = models.CharField(max_length=64, help_text="the commit that the destination shall hold")
    path = models.CharField(max_length=2048)
    asked_by = models.CharField(max_length=150, blank=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, blank=True, choices=Outcome.choices, help_text="blank while it goes on")
    error = ExactTextField(blank=True)
    in_hand = models.BooleanField(
        default=False, db_default=False, help_text="a slice of it is being worked on, or its worker is gone"
    )
    takeovers = models.IntegerField(default=0, db_default=0, help_text="how often its worker was gone, in a row")
    actions = models.BooleanField(default=True, db_default=True, help_text="with what is below _lakefs_actions/")
    cut = models.BooleanField(default=False, help_text="its units are rows")
    files = models.BigIntegerField(default=0, help_text="of the commit")
    equal = models.BigIntegerField(default=0)
    equal_bytes = models.BigIntegerField(default=0)
    missing = models.BigIntegerField(default=0)
    different = models.BigIntegerField(default=0)
    foreign = models.BigIntegerField(default=0)
    named = models.BigIntegerField(default=0, help_text="so many of what drifted are rows")
    requests = models.BigIntegerField(default=0)

    objects = VerificationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["export"], condition=Q(ended_at=None), name="export_verification_one_at_a_time"
            )
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.export} {self.ref[:8]}"

    @property
    def drifted(self) -> int:
        """How many keys are not as they should be, as far as it was seen."""
        return self.missing + self.different + self.foreign

    @property
    def seen(self) -> int:
        """How many files of the commit were compared."""
        return self.equal + self.missing + self.different


class VerificationUnit(models.Model):
    """A stretch of keys that is not compared to its end yet."""

    verification = models.ForeignKey(ExportVerification, models.CASCADE, related_name="units")
    number = models.IntegerField(help_text="in the order of their keys")
    unit = models.JSONField(help_text="as exports/engine/unit_rows.py writes it")
    entries = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["verification", "number"], name="verification_unit_once")]
        ordering = ["number"]


class ExportDrift(models.Model):
    """A key that is not as the commit has it."""

    class Kind(models.TextChoices):
        MISSING = "missing", "not at the destination"
        DIFFERENT = "different", "another object"
        FOREIGN = "foreign", "not in the commit"

    verification = models.ForeignKey(ExportVerification, models.CASCADE, related_name="drift")
    key = models.BinaryField()
    kind = models.CharField(max_length=16, choices=Kind.choices)
    size = models.BigIntegerField(null=True, help_text="in the commit")
    etag = ExactTextField(blank=True)
    there_size = models.BigIntegerField(null=True, help_text="at the destination")
    there_etag = ExactTextField(blank=True)

    class Meta:
        ordering = ["pk"]

    @property
    def name(self) -> str:
        """The key as text; what of it is no UTF-8 is shown as \\xNN."""
        return bytes(self.key).decode("utf-8", "backslashreplace")

    @property
    def sign(self) -> str:
        """As `rclone check --combined` has it, from the commit to the destination."""
        return {"missing": "+", "different": "*", "foreign": "-"}[self.kind]
