"""Runs of exports with their units of work, what failed, and what they leave: markers and manifests."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from core.exporting.failure_reasons import reason_words
from db.fields import ExactTextField
from exports.models.export import Export
from exports.querysets import RunQuerySet


class ExportRun(models.Model):
    """One attempt to bring a destination to a commit, and how far it came. It goes on whoever dies meanwhile."""

    class Phase(models.TextChoices):
        PLAN = "plan"
        CLEAR = "clear"
        COPY = "copy"
        LAST = "last"
        MARKERS = "markers"
        MANIFEST = "manifest"
        STATUS = "status"
        DONE = "done"

    export = models.ForeignKey(Export, models.CASCADE, related_name="runs")
    ref = models.CharField(max_length=64)
    message = ExactTextField(blank=True, help_text="of the commit")
    base = models.CharField(max_length=64, blank=True, help_text="what the destination holds; none: all is new")
    attempted = models.JSONField(default=list, help_text="commits of which the destination may hold parts")
    path = models.CharField(max_length=2048)
    store = models.CharField(
        max_length=300, null=True, blank=True, help_text="the host of the path's store; null: nobody knows"
    )
    status_path = models.CharField(max_length=2048, blank=True)
    patterns = models.JSONField(default=list)
    former = models.JSONField(
        default=list, db_default=[], help_text="expressions of earlier runs: what they have marked is marked no more"
    )
    actions = models.BooleanField(default=True, db_default=True, help_text="with what is below _lakefs_actions/")
    actions_anew = models.BooleanField(
        default=False, db_default=False, help_text="what is below _lakefs_actions/ may lie there otherwise than wanted"
    )
    repairs = models.ForeignKey(
        "ExportVerification",
        models.SET_NULL,
        null=True,
        related_name="repairs",
        db_constraint=False,
        help_text="it brings again what this one found missing or different; null: it brings a commit",
    )
    listed = models.BooleanField(
        null=True, help_text="whether it wrote a manifest; null: a version before did, where it succeeded"
    )
    asked_by = models.CharField(max_length=150, blank=True)
    phase = models.CharField(max_length=16, choices=Phase.choices, default=Phase.PLAN)
    begun = models.JSONField(
        default=dict, db_default={}, help_text="when each phase after the first began, Unix seconds"
    )
    skipped_commits = models.IntegerField(
        null=True, help_text="between the run before and this one: never exported by themselves; null: unknown"
    )
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=32, blank=True, help_text="as the export's state; blank while it goes on")
    error = ExactTextField(blank=True)
    in_hand = models.BooleanField(default=False, help_text="a slice of it is being worked on, or its worker is gone")
    cut = models.BooleanField(default=False, help_text="its units are rows")
    compare = models.BooleanField(default=False, help_text="look at the destination first: some may be there already")
    unanswered = models.BooleanField(
        default=False, db_default=False, help_text="a write of its phase got no answer; that phase may go on at once"
    )
    failed_in = models.JSONField(default=list, help_text="directories in which something failed, as Latin-1")
    takeovers = models.IntegerField(default=0, help_text="how often its worker was gone, since it last got on")
    to_copy = models.BigIntegerField(default=0)
    to_delete = models.BigIntegerField(default=0)
    to_copy_bytes = models.BigIntegerField(default=0)
    copied = models.BigIntegerField(default=0)
    copied_bytes = models.BigIntegerField(default=0)
    skipped = models.BigIntegerField(default=0, help_text="there already, as they shall be")
    deleted = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    kept = models.BigIntegerField(
        default=0, db_default=0, help_text="were to be removed, but what is there is not what was exported"
    )
    kept_keys = models.JSONField(default=list, db_default=[], help_text="some of these, as they are shown")
    lost = models.JSONField(
        default=list, db_default=[], help_text="commits that the destination may hold, of which nobody knows what"
    )
    requests = models.BigIntegerField(default=0)
    told = models.CharField(
        max_length=100,
        blank=True,
        default="",
        db_default="",
        help_text="what its status file says; blank: there is none, or a later run has written it",
    )
    told_path = models.CharField(
        max_length=2048, blank=True, default="", db_default="", help_text="the status path of that file"
    )

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["export"], condition=Q(ended_at=None), name="export_run_one_at_a_time")
        ]
        indexes = [models.Index(fields=["export", "-started_at"], name="export_run_latest")]
        ordering = ["-started_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.export} {self.ref[:8]}"


class MarkedPlace(models.Model):
    """A place in which directories got markers. It outlives the export that wrote them."""

    place = models.CharField(max_length=2048, db_index=True)
    store = models.CharField(
        max_length=300, null=True, blank=True, help_text="its host; null: written down by a version that did not know"
    )
    expressions = models.JSONField(default=list, help_text="all by which directories were marked")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("place", "store"), name="place_of_store_marked_once"),
            models.UniqueConstraint(fields=("place",), condition=Q(store=None), name="place_marked_once"),
        )

    def __str__(self) -> str:
        return self.place


class ExportManifest(models.Model):
    """A manifest that was written and not removed since: what of it tells ours from a file that somebody put there.

    The version before deletes exports and verifications without knowing what refers to them: hence no constraints.
    """

    export = models.ForeignKey(Export, models.CASCADE, related_name="manifests", db_constraint=False)
    run = models.OneToOneField(ExportRun, models.CASCADE, related_name="listing", db_constraint=False)
    uri = models.CharField(max_length=4096)
    size = models.BigIntegerField(help_text="as the store told it after the write")
    etag = models.CharField(max_length=256)
    written_at = models.DateTimeField()

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.uri


class SkippedCommit(models.Model):
    """A commit that landed while the run before went on, or failed: this one exported a newer one instead."""

    run = models.ForeignKey(ExportRun, models.CASCADE, related_name="skipped_ones")
    sha = models.CharField(max_length=64)
    message = ExactTextField(blank=True)
    committed_at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]


class ExportUnit(models.Model):
    """A stretch of keys of a run (`core.exporting.unit_planning.Unit`), or a part of one: the unit of progress."""

    run = models.ForeignKey(ExportRun, models.CASCADE, related_name="units")
    number = models.IntegerField(help_text="in the order of their keys")
    part = models.IntegerField(default=0)
    parts = models.IntegerField(default=1)
    unit = models.JSONField(help_text="as exports/engine/unit_rows.py writes it")
    entries = models.BigIntegerField(default=0, help_text="that are read for it, at most")
    planned = models.BooleanField(default=False)
    files = models.BigIntegerField(default=0, help_text="planned ones, of all parts together")
    last_keys = models.BigIntegerField(default=0, help_text="so many of them come last in their directory")
    phase = models.CharField(max_length=16, blank=True, help_text="the last phase of which nothing is left here")
    left = models.JSONField(null=True, help_text="rows of the phase at hand that are left; null: all of them")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "number", "part"], name="export_unit_once")]
        ordering = ["number", "part"]


class ExportDirectory(models.Model):
    """A directory that a run touches and some pattern matches: it gets a marker when all below it has arrived."""

    class State(models.TextChoices):
        PLANNED = "planned"
        CLEARED = "cleared"
        WRITTEN = "written"
        HELD = "held", "held back: something below it failed"
        USERS = "users", "the commit has a file of this name"

    run = models.ForeignKey(ExportRun, models.CASCADE, related_name="directories")
    path = models.BinaryField(help_text="with its slash; the root is empty")
    depth = models.IntegerField(help_text="how many slashes: deeper ones get their markers first")
    state = models.CharField(max_length=16, choices=State.choices, default=State.PLANNED)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "path"], name="export_directory_once")]
        indexes = [models.Index(fields=["run", "state", "depth"], name="export_directory_next")]


class ExportFailure(models.Model):
    """A file that a run could not bring, or remove."""

    run = models.ForeignKey(ExportRun, models.CASCADE, related_name="failures")
    key = models.BinaryField()
    reason = models.CharField(max_length=32)
    detail = ExactTextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "key"], name="export_failure_once")]
        ordering = ["pk"]

    @property
    def name(self) -> str:
        """The key as text; what of it is no UTF-8 is shown as \\xNN."""
        return bytes(self.key).decode("utf-8", "backslashreplace")

    @property
    def words(self) -> str:
        """The reason as people read it."""
        return reason_words(self.reason)
