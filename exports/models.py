"""What is known of exports: configuration and state, runs with their units of work, what failed, what was verified.

An export is of one branch of one source repository, and needs no mirror of it. Decisions are made by
core/exporting/state_machine.py.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from core.access.policies import branch_arn
from core.exporting import manifests, state_machine
from core.exporting.failure_reasons import reason_words
from db.fields import ExactTextField
from exports.querysets import ExportQuerySet, RunQuerySet, VerificationQuerySet


class Export(models.Model):
    """The configuration of a branch's export, and where it stands. Commit ids are "" for none."""

    class State(models.TextChoices):
        NEVER = state_machine.State.NEVER.value, "never exported"
        IN_PROGRESS = state_machine.State.IN_PROGRESS.value
        SUCCESS = state_machine.State.SUCCESS.value
        FAILED = state_machine.State.FAILED.value
        REPAIRED = state_machine.State.REPAIRED.value

    class Manifest(models.TextChoices):
        ALWAYS = manifests.Mode.ALWAYS.value, "After every run"
        DAILY = manifests.Mode.DAILY.value, "At most once a day"
        NEVER = manifests.Mode.NEVER.value, "Never"

    region = models.CharField(max_length=64, help_text="of the source")
    repository = models.CharField(max_length=64)
    branch = models.CharField(max_length=256)
    creation_date = models.BigIntegerField(help_text="of the repository, Unix seconds: another one is not ours")
    storage_namespace = models.CharField(max_length=1024, help_text="of the repository")
    path = models.CharField(max_length=2048)
    status_path = models.CharField(max_length=2048, blank=True)
    patterns = models.JSONField(default=list, help_text="lastKeysInPrefixRegexp")
    continuous = models.BooleanField(default=False)
    manifest = models.CharField(
        max_length=8,
        choices=Manifest.choices,
        default=Manifest.DAILY,
        db_default=Manifest.ALWAYS,
        help_text="when the list of all files is written; always: as versions before did",
    )
    actions = models.BooleanField(
        default=False, db_default=True, help_text="with what is below _lakefs_actions/; true: as versions before did"
    )
    actions_at_success = models.BooleanField(
        default=False, db_default=True, help_text="whether the last success brought what is below _lakefs_actions/"
    )
    paused = models.BooleanField(default=False)
    objects_per_second = models.IntegerField(null=True, help_text="null: as fast as it goes")
    bytes_per_second = models.BigIntegerField(null=True, help_text="null: as fast as it goes")
    state = models.CharField(max_length=32, blank=True, choices=State.choices)
    error = ExactTextField(blank=True, help_text="why the last run failed")
    wanted = models.BooleanField(default=False, help_text="one export is due, asked for by a change of these settings")
    wanted_ref = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="the branch's head when it was asked for"
    )
    current_ref = models.CharField(max_length=64, blank=True, help_text="the commit of the last run")
    last_success_ref = models.CharField(max_length=64, blank=True)
    path_at_success = models.CharField(max_length=2048, blank=True)
    succeeded_at = models.DateTimeField(null=True)
    attempted = models.JSONField(default=list, help_text="commits that runs tried since the last success")
    attempted_path = models.CharField(max_length=2048, blank=True)
    left = models.JSONField(
        default=dict, db_default={}, help_text="places that were given up, each with the commits that it may hold"
    )
    marked = models.JSONField(
        default=dict, db_default={}, help_text="as MarkedPlace, by the version before; only read any more"
    )
    head = models.CharField(max_length=64, blank=True, help_text="of the branch, as last seen")
    head_at = models.DateTimeField(null=True, help_text="last valid look at the branch")
    look_error = models.TextField(blank=True)
    behind_commits = models.IntegerField(
        null=True, help_text="of the branch's line, after the last success; null: unknown"
    )
    behind_more = models.BooleanField(default=False, db_default=False, help_text="there are more than these")
    behind_since = models.DateTimeField(
        null=True, help_text="when the first of them was made, as far as it was counted"
    )
    behind_of = models.CharField(
        max_length=129, blank=True, default="", db_default="", help_text="HEAD:BASE of which this was counted"
    )
    writes_until = models.DateTimeField(null=True, help_text="nothing that was ever begun is written after it")
    deleting = models.BooleanField(default=False, help_text="it goes when nothing of it can write any more")
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    objects = ExportQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["region", "repository", "branch"], name="export_once")]
        ordering = ["repository", "branch", "pk"]

    def __str__(self) -> str:
        return f"{self.repository}/{self.branch} ({self.region})"

    @property
    def arn(self) -> str:
        """The branch as a resource."""
        return branch_arn(self.repository, self.branch)

    @property
    def audit_name(self) -> str:
        """The subject of events about it."""
        return f"export/{self.region}/{self.repository}/{self.branch}"

    def standing(self) -> state_machine.ExportSituation:
        """What decisions are made from."""
        return state_machine.ExportSituation(
            state=state_machine.State(self.state),
            path=self.path,
            continuous=self.continuous,
            paused=self.paused,
            wanted=self.wanted,
            wanted_ref=self.wanted_ref,
            last_success_ref=self.last_success_ref,
            path_at_success=self.path_at_success,
            actions=self.actions,
            actions_at_success=self.actions_at_success,
            attempted=tuple(self.attempted),
            attempted_path=self.attempted_path,
            left=tuple(self.left.get(self.path, ())),
        )


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

    place = models.CharField(max_length=2048, unique=True)
    expressions = models.JSONField(default=list, help_text="all by which directories were marked")

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
