"""What was checked at a mirror, what is missing or wrong, and checks that somebody asked for."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from core.bringing import REPLACEABLE
from core.mirroring.object_check import WAIVABLE
from core.replication.causes import Cause
from db.fields import ExactTextField
from mirrors.models.mirror import Mirror
from mirrors.models.querysets import (
    BlockerQuerySet,
    CoverageQuerySet,
    ValidationQuerySet,
)


class Coverage(models.Model):
    """A range that was checked at a destination: the unit of validated work.

    `complete` counts for heads; `gone` counts for ancestors only; `waiting` has blockers to look for again, or stands
    in question (`doubt`). A row stays when its range is needed no more: others go by what it looked for.
    """

    class Doubt(models.TextChoices):
        NONE = ""
        SHARED = "shared", "it was complete, and may name something that was found missing or wrong: it is read"
        FRESH = "fresh", "the same of one that was not complete yet"
        WHOLE = "whole", "all that it names is looked for anew"

    class State(models.TextChoices):
        COMPLETE = "complete"
        GONE = "gone"
        WAITING = "waiting"

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="coverage")
    range_id = models.CharField(max_length=64)
    state = models.CharField(max_length=16, choices=State.choices)
    depth = models.CharField(max_length=16)
    deeper = models.CharField(
        max_length=16,
        default="",
        db_default="",
        blank=True,
        help_text="beyond the mirror's own: the depth that a check on demand found it damaged at. `content` also where "
        "reading found more than is kept by name: then all of it is read",
    )
    doubt = models.CharField(max_length=8, choices=Doubt.choices, default="", db_default="", blank=True)
    bases = models.JSONField(default=list, help_text="range ids whose coverage this one builds on")
    min_key = models.BinaryField(null=True, help_text="the beginning of its first path")
    max_key = models.BinaryField(null=True, help_text="the beginning of its last path")
    looked = models.BinaryField(
        null=True,
        help_text="CRC-32 of each address that was looked for and not left out on account of a base, ascending, as "
        "little-endian uint32; null (of an older version) proves nothing",
    )
    entries = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    looked_up = models.BigIntegerField(default=0)
    problems = models.BigIntegerField(default=0)
    note = ExactTextField(blank=True, default="", help_text="how objects passed otherwise than by their entries")
    checked_at = models.DateTimeField()
    verify_at = models.DateTimeField(null=True, help_text="when it is checked again; null while it has blockers")
    bring_asked_at = models.DateTimeField(
        null=True, help_text="when somebody had LakeMirror copy all that it lacks: more than is kept by name"
    )

    objects = CoverageQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["mirror", "range_id"], name="coverage_range")]
        indexes = [
            models.Index(fields=["mirror", "verify_at"], name="coverage_to_verify"),
            models.Index(fields=["mirror", "max_key"], name="coverage_keys"),
            models.Index(fields=["mirror"], condition=~Q(deeper=""), name="coverage_deeper"),
            models.Index(fields=["mirror"], condition=Q(bring_asked_at__isnull=False), name="coverage_bring_asked"),
            models.Index(fields=["mirror"], condition=Q(looked=None) & ~Q(depth=""), name="coverage_unnoted"),
        ]

    @property
    def may_have_been_complete(self) -> bool:
        """Whether what is found missing now may have been there before; not of one that still waits for its first."""
        if self.state != self.State.WAITING or self.doubt == self.Doubt.SHARED:
            return True
        return self.doubt == self.Doubt.WHOLE and bool(self.max_key)  # else its file was never read


class Blocker(models.Model):
    """One thing that keeps commits from being promoted: which, why, since when, and when it is looked at again."""

    class Kind(models.TextChoices):
        RECORD = "record"
        METARANGE = "metarange"
        RANGE = "range"
        OBJECT = "object"

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="blockers")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    holder_id = models.CharField(max_length=64, help_text="the commit, metarange or range that needs it")
    key = models.CharField(
        max_length=64, help_text="SHA-256 of the address, or the id: tells blockers of a holder apart"
    )
    address = models.TextField(help_text="relative to the namespace, or a URI")
    address_hash = models.CharField(
        max_length=32, default="", db_default="", blank=True, help_text="what a store's event finds it by"
    )
    path = models.TextField(blank=True, help_text="the entry's path; bytes that are not UTF-8 are escaped")
    size = models.BigIntegerField(null=True)
    etag = ExactTextField(blank=True)
    reason = models.CharField(max_length=32)
    detail = ExactTextField(blank=True)
    full = models.BooleanField(
        null=True, help_text="the address is a URI of its own, not below the namespace; null: of an older version"
    )
    crc = models.BigIntegerField(null=True, help_text="CRC-32 of an object's address, as Coverage.looked has it")
    gone_at_source = models.BooleanField(default=False)
    loss_untold = models.BooleanField(
        default=False,
        db_default=False,
        help_text="it was found to be gone at the source, too, and its other mirrors are to verify what may name it",
    )
    must_read = models.BooleanField(
        default=False,
        db_default=False,
        help_text="reading found it wrong, or nothing: it is over when it was read again",
    )
    unneeded = models.BooleanField(
        default=False,
        db_default=False,
        help_text="no commit that is needed waits for it: it is only remembered, until its holder is needed again",
    )
    waived = models.BooleanField(
        default=False,
        db_default=False,
        help_text="the object is waived: while it can't be read there, it is in no descendant's way",
    )
    damage = models.BooleanField(default=False, help_text="what holds it had been complete: found when checked again")
    cause = models.CharField(
        max_length=32,
        default="",
        db_default="",
        blank=True,
        help_text="why the stores' replication has not brought it: core/replication/causes.py; empty: not asked yet",
    )
    cause_told = ExactTextField(default="", db_default="", blank=True, help_text="the same in a sentence")
    cause_advice = ExactTextField(default="", db_default="", blank=True, help_text="what to do about it")
    cause_at = models.DateTimeField(null=True, help_text="when the source's store was asked for that")
    bring_asked_at = models.DateTimeField(
        null=True, help_text="when somebody had LakeMirror copy it once, in place of the stores"
    )
    replace_asked_at = models.DateTimeField(
        null=True, help_text="when somebody had LakeMirror write the source's bytes over it once"
    )
    first_seen = models.DateTimeField()
    attempts = models.IntegerField(default=1)
    look_at = models.DateTimeField()

    objects = BlockerQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["mirror", "kind", "holder_id", "key"], name="blocker_once"),
        ]
        indexes = [
            models.Index(fields=["mirror", "look_at"], name="blocker_due"),
            models.Index(fields=["mirror", "address_hash"], name="blocker_address"),
            models.Index(fields=["mirror", "crc"], name="blocker_crc"),
            models.Index(fields=["mirror"], condition=Q(waived=True), name="blocker_waived"),
            models.Index(fields=["mirror"], condition=Q(loss_untold=True), name="blocker_loss_untold"),
            models.Index(fields=["mirror", "id"], condition=Q(gone_at_source=False), name="blocker_waited_for"),
            models.Index(
                fields=["mirror", "id"], condition=Q(damage=True, gone_at_source=False), name="blocker_damage"
            ),
        ]
        ordering = ["first_seen", "pk"]

    @property
    def is_waived(self) -> bool:
        """Whether history may lack it because somebody has waived it: while it is not there, not when it is wrong."""
        return self.waived and self.reason in WAIVABLE and not self.gone_at_source

    @property
    def is_awaited(self) -> bool:
        """Whether it is missing at the destination alone, and somebody may still bring it."""
        return self.reason.endswith("missing") and not self.gone_at_source and not self.is_waived

    @property
    def is_asked_for(self) -> bool:
        """Whether LakeMirror is to copy it, or to write over it, because somebody wants it."""
        if self.is_replaceable:
            return self.replace_asked_at is not None
        return self.is_awaited and self.bring_asked_at is not None

    @property
    def is_explained(self) -> bool:
        """Whether its cause still tells why it is as it is."""
        if self.cause == Cause.NOT_REPLACED:
            return self.is_replaceable
        return self.is_awaited

    @property
    def is_replaceable(self) -> bool:
        """Whether the source's bytes, written over what is there, may mend it."""
        return self.reason in REPLACEABLE and not self.full and not self.gone_at_source


class Run(models.Model):
    """A check's life and progress."""

    LANES = ("small", "large")
    """How it brings objects of each size is told apart."""

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="runs")
    validation = models.ForeignKey("Validation", models.SET_NULL, null=True, related_name="runs")
    job = models.CharField(max_length=32)
    stop_asked = models.BooleanField(
        default=False, db_default=False, help_text="somebody wants it stopped: nothing more is written of it"
    )
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, default="running")
    error = ExactTextField(blank=True)
    ranges = models.IntegerField(default=0)
    ranges_done = models.IntegerField(default=0)
    entries = models.BigIntegerField(default=0)
    looked_up = models.BigIntegerField(default=0)
    requests = models.BigIntegerField(default=0)
    problems = models.BigIntegerField(default=0)
    lacking = models.BigIntegerField(
        default=0, db_default=0, help_text="objects that it found missing, and was to bring"
    )
    copied = models.BigIntegerField(default=0, db_default=0, help_text="those of them that it brought")
    copied_bytes = models.BigIntegerField(default=0, db_default=0)
    lanes = models.JSONField(
        default=dict, db_default={}, help_text="by lane the counts of spark_jobs/check/progress.py; empty: none yet"
    )

    class Meta:
        indexes = [models.Index(fields=["mirror", "-started_at"], name="run_latest")]
        ordering = ["-started_at", "-pk"]


class Validation(models.Model):
    """A check that somebody asked for: everything that some commits' metaranges name, whatever coverage says."""

    class What(models.TextChoices):
        COMMIT = "commit"
        BRANCH = "branch"
        ALL = "all"

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="validations")
    what = models.CharField(max_length=16, choices=What.choices)
    branch = models.CharField(max_length=256, blank=True)
    commit = models.CharField(max_length=64, blank=True, help_text="the commit asked for, or the branch's head then")
    depth = models.CharField(max_length=16)
    key = models.CharField(max_length=64, help_text="SHA-256 of what is asked for: the same once more joins it")
    metaranges = models.JSONField(default=list, help_text="metarange ids that are still to be read")
    asked_by = models.CharField(max_length=150, blank=True)
    asked_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    stopped_by = models.CharField(
        max_length=150, default="", db_default="", blank=True, help_text="who had it stopped, if somebody did"
    )
    failed_at = models.DateTimeField(null=True, help_text="when the last try failed; others go first then")
    error = ExactTextField(blank=True, help_text="why the last try failed")
    ranges = models.BigIntegerField(default=0, help_text="so far as the metaranges are read")
    ranges_done = models.BigIntegerField(default=0)
    entries = models.BigIntegerField(default=0)
    problems = models.BigIntegerField(default=0)

    objects = ValidationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["mirror", "key"], condition=Q(ended_at=None), name="validation_open_once")
        ]
        indexes = [models.Index(fields=["mirror", "ended_at"], name="validation_of_mirror")]

    @property
    def state(self) -> str:
        """Queued, running, retrying (after a try that failed), stopped or done."""
        if self.stopped_by:
            return "stopped"
        if self.ended_at is not None:
            return "done"
        if self.error:
            return "retrying"
        return "queued" if self.started_at is None else "running"


class ValidationRange(models.Model):
    """A range that a check on demand has still to look through."""

    validation = models.ForeignKey(Validation, models.CASCADE, related_name="left")
    range_id = models.CharField(max_length=64)
    entries = models.BigIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["validation", "range_id"], name="validation_range_once")]
