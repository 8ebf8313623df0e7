"""What LakeMirror remembers: facts about sources and destinations, and the work in hand.

Facts are written by duties (jobs/duties.py), decisions are made from them by pure functions in core/.
Rows of `Commit` are inserted parents first, so ordering by primary key is a topological order.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q

from core import types
from core.mirroring.branch_selection import ALL, Selection
from db.fields import ExactMapField, ExactTextField
from mirrors.proof_rows import MetarangeCoverage, MoveIntent
from mirrors.querysets import (
    BlockerQuerySet,
    CoverageQuerySet,
    MirrorCommitQuerySet,
    MirrorQuerySet,
    ValidationQuerySet,
)

# The other tables are defined here.
__all__ = ["MetarangeCoverage", "MoveIntent"]


class Repository(models.Model):
    """A source repository, pinned by its creation date and namespace at the first look."""

    region = models.CharField(max_length=64)
    name = models.CharField(max_length=64)
    storage_namespace = models.CharField(max_length=1024)
    creation_date = models.BigIntegerField(help_text="Unix seconds, as the source gives it")
    default_branch = models.CharField(max_length=256)
    looked_at = models.DateTimeField(null=True, help_text="last valid look at its branches")
    look_error = ExactTextField(blank=True)
    frozen_reason = ExactTextField(
        blank=True, help_text="why nothing moves any more: the source is not the one we pinned"
    )
    unrelated_since = models.DateTimeField(
        null=True, help_text="when a history was first seen that shares no commit with what was known of the source"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["region", "name"], name="repository_region_name")]

    def __str__(self) -> str:
        return f"{self.name} ({self.region})"

    @property
    def namespace(self) -> str:
        """Where its objects lie, to put a `/` and a key behind: lakeFS also takes a namespace that ends in `/`."""
        return self.storage_namespace.rstrip("/")


class CommitRecord(models.Model):
    """A commit record as the source gave it."""

    sha = models.CharField(max_length=64)
    parents = models.JSONField(default=list)
    committer = ExactTextField(blank=True)
    message = ExactTextField(blank=True)
    creation_date = models.BigIntegerField()
    metarange_id = models.CharField(max_length=64, blank=True)
    metadata = ExactMapField(default=dict)
    generation = models.BigIntegerField()
    version = models.IntegerField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.sha[:8]

    def record(self) -> types.Commit:
        """The record as the domain knows it."""
        return types.Commit(
            id=self.sha,
            parents=tuple(self.parents),
            committer=self.committer,
            message=self.message,
            creation_date=self.creation_date,
            metarange_id=self.metarange_id,
            metadata=self.metadata,
            generation=self.generation,
            version=self.version,
        )

    @staticmethod
    def columns(record: types.Commit) -> dict[str, Any]:
        """The values of a record's columns."""
        return {
            "sha": record.id,
            "parents": list(record.parents),
            "committer": record.committer,
            "message": record.message,
            "creation_date": record.creation_date,
            "metarange_id": record.metarange_id,
            "metadata": dict(record.metadata),
            "generation": record.generation,
            "version": record.version,
        }


class Commit(CommitRecord):
    """A commit of a source repository, shared by all of its mirrors. Its parents have smaller keys."""

    repository = models.ForeignKey(Repository, models.CASCADE, related_name="commits")
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repository", "sha"], name="commit_repository_sha")]


class UnplacedCommit(CommitRecord):
    """A record that was read from a source's log, and is no `Commit` yet: its parents have to be rows first."""

    repository = models.ForeignKey(Repository, models.CASCADE, related_name="unplaced")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repository", "sha"], name="unplaced_commit_once")]


class SourceBranch(models.Model):
    """A branch of a source repository as last seen."""

    repository = models.ForeignKey(Repository, models.CASCADE, related_name="branches")
    name = models.CharField(max_length=256)
    head = models.CharField(max_length=64)
    # -1: not looked at since a rebuild; the head is then what a mirror's certificate proves, "" if it proves none
    position = models.BigIntegerField(help_text="of the newest candidate")
    changed_at = models.DateTimeField(help_text="when the sensor first saw this head")
    hidden = models.BooleanField(
        null=True, help_text="left out of listings that don't ask for such; null: not known yet"
    )
    missing_since = models.DateTimeField(null=True)
    missing_looks = models.IntegerField(default=0)
    gone_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repository", "name"], name="source_branch_name")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class SourceTag(models.Model):
    """A tag of a source repository as last seen; kept while a mirror of it follows tags."""

    repository = models.ForeignKey(Repository, models.CASCADE, related_name="tags")
    name = models.CharField(max_length=256)
    commit_id = models.CharField(max_length=64)
    seen_at = models.DateTimeField(help_text="when the sensor first saw it at this commit")
    missing_since = models.DateTimeField(null=True)
    missing_looks = models.IntegerField(default=0)
    gone_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repository", "name"], name="source_tag_name")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Candidate(models.Model):
    """A commit that the source branch is known to have pointed to, in order of sight, then of the chain.

    At positions below -1: what a default branch only is inferred to have pointed to (mirrors/inferring.py).
    """

    branch = models.ForeignKey(SourceBranch, models.CASCADE, related_name="candidates")
    position = models.BigIntegerField()
    commit = models.ForeignKey(Commit, models.CASCADE, related_name="candidacies")
    seen_at = models.DateTimeField()
    fast_forward = models.BooleanField(default=True, help_text="false when the move to it was no fast-forward")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["branch", "position"], name="candidate_position")]
        ordering = ["position"]


def all_branches() -> dict[str, list[str]]:
    """The selection of a mirror that follows every branch."""
    return {"include": list(ALL), "exclude": []}


class Mirror(models.Model):
    """A read-only copy of a source repository in another region. `name` is its id and its repository's name there."""

    class State(models.TextChoices):
        CREATING = "creating", "New"
        ACTIVE = "active", "Active"
        STOPPED = "stopped", "Stopped"
        DELETING = "deleting", "Deleting"

    name = models.CharField(max_length=64, unique=True)
    source = models.ForeignKey(Repository, models.PROTECT, related_name="mirrors")
    region = models.CharField(max_length=64)
    storage_namespace = models.CharField(max_length=1024)
    state = models.CharField(max_length=16, choices=State.choices, default=State.CREATING)
    reason_code = models.CharField(max_length=64, blank=True)
    reason = ExactTextField(blank=True, help_text="why it is stopped, or what the last attempt met")
    paused = models.BooleanField(default=False)
    depth = models.CharField(max_length=16, default="etag")
    content_sample = models.FloatField(default=1.0, help_text="the share of objects that depth `content` reads, 0 to 1")
    imported = models.CharField(max_length=16, default="block")
    selected = models.JSONField(
        default=all_branches, db_default=all_branches(), help_text="branches to mirror: globs to include and to exclude"
    )
    follows_all = models.BooleanField(
        default=False, db_default=False, help_text="has every commit of its source, and is given each new one"
    )
    reselected = models.BooleanField(
        default=False, db_default=False, help_text="branches were unselected: commits that it needs no more are to go"
    )
    tags = models.BooleanField(default=False, db_default=False, help_text="follows the source's tags")
    repair_tampering = models.CharField(
        max_length=16, default="report", db_default="report", help_text="what becomes of uncommitted changes"
    )
    history = models.CharField(
        max_length=16, default="full", db_default="full", help_text="full, or head: of ancestors the records only"
    )
    first_sync = models.CharField(
        max_length=16, default="exact", db_default="exact", help_text="what the default branch may show at first"
    )
    rpo_seconds = models.IntegerField(null=True, help_text="how late a branch may be; null: core.lag.LATE_AFTER")
    watched_since = models.DateTimeField(
        null=True, help_text="since when breaches of that are noted: the end of its first copy"
    )
    pinned_creation_date = models.BigIntegerField(null=True, help_text="of the destination repository, Unix seconds")
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    described = models.CharField(
        max_length=64, default="", db_default="", blank=True, help_text="digest of the descriptor at the destination"
    )
    store = models.CharField(
        max_length=1100, default="", db_default="", blank=True, help_text="the store that its checks were made at"
    )
    facts_epoch = models.BigIntegerField(
        default=0, db_default=0, help_text="counts the times that something proven was taken back"
    )
    last_validated_at = models.DateTimeField(null=True)
    destination_looked_at = models.DateTimeField(null=True)

    objects = MirrorQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["region", "storage_namespace"], name="mirror_namespace"),
        ]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def namespace(self) -> str:
        """Where its objects lie, to put a `/` and a key behind."""
        return self.storage_namespace.rstrip("/")

    @property
    def selection(self) -> Selection:
        """Which branches of its source it follows."""
        return Selection(self.source.default_branch, tuple(self.selected["include"]), tuple(self.selected["exclude"]))


class Waiver(models.Model):
    """An operator accepts that some commits of a mirror are unreadable there: history that was never replicated."""

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="waivers")
    reason = models.CharField(max_length=1000)
    given_by = models.CharField(max_length=150)
    given_at = models.DateTimeField()


class MirrorBranch(models.Model):
    """A branch at the destination as last read back, and which candidate that is."""

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="branches")
    name = models.CharField(max_length=256)
    head = models.CharField(max_length=64)
    position = models.BigIntegerField(default=-1, help_text="of the candidate that it points to; -1 unknown")
    advanced_at = models.DateTimeField(null=True)
    certified = models.CharField(
        max_length=64, default="", db_default="", blank=True, help_text="the commit that its certificate tells of"
    )
    uncommitted = models.BooleanField(default=False, help_text="somebody wrote to the mirror's branch by force")
    stray = models.BooleanField(default=False, help_text="exists at the destination only, not by us")
    misplaced = models.BooleanField(
        default=False, db_default=False, help_text="its head is not where this mirror put it, and is to be put back"
    )
    proven = models.BooleanField(
        default=False, db_default=False, help_text="its head is proven whole now: kept by mirrors/proven_heads.py"
    )
    looked_at = models.DateTimeField(null=True, help_text="last look for uncommitted changes")
    reset_asked = models.BooleanField(
        default=False, db_default=False, help_text="an operator wants its uncommitted changes undone"
    )
    delete_asked = models.BooleanField(
        default=False, db_default=False, help_text="it is no longer selected, and an operator wants it deleted"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["mirror", "name"], name="mirror_branch_name")]
        ordering = ["name"]


class MirrorTag(models.Model):
    """A tag at the destination as last read back."""

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="tag_rows")
    name = models.CharField(max_length=256)
    commit_id = models.CharField(max_length=64, blank=True, help_text="empty: on its way to another commit")
    stray = models.BooleanField(default=False, help_text="not made by us")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["mirror", "name"], name="mirror_tag_name")]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class MirrorCommit(models.Model):
    """One commit at one mirror: what has arrived, since when, and what it waits for."""

    class Record(models.TextChoices):
        PENDING = "pending"
        ACCEPTED = "accepted"
        REFUSED = "refused"
        TAMPERED = "tampered"

    class Data(models.TextChoices):
        UNKNOWN = "unknown"
        WAITING = "waiting"
        COMPLETE = "complete"
        GONE = "gone"
        UNCHECKED = "unchecked"

    class Urgency(models.IntegerChoices):
        NONE = 0, "in its turn"
        ASKED = 1, "somebody wants it first; what it needs is not marked yet"
        NEEDED = 2, "goes first, and so does all that it needs"

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="commits")
    commit = models.ForeignKey(Commit, models.CASCADE, related_name="at_mirrors")
    record = models.CharField(max_length=16, choices=Record.choices, default=Record.PENDING)
    data = models.CharField(max_length=16, choices=Data.choices, default=Data.UNKNOWN)
    history = models.BooleanField(default=False, help_text="all its ancestors' records and data are in order")
    waiver = models.ForeignKey(Waiver, models.SET_NULL, null=True, related_name="commits", db_index=False)
    urgency = models.SmallIntegerField(
        choices=Urgency.choices, default=Urgency.NONE, db_default=0, help_text="whether it goes before others"
    )
    detail = ExactTextField(blank=True)
    waits_for = models.JSONField(default=list, help_text="metarange and range ids it waits for, at most 100")
    recorded_at = models.DateTimeField(null=True)
    metadata_at = models.DateTimeField(null=True)
    validated_at = models.DateTimeField(null=True)
    promoted_at = models.DateTimeField(null=True)
    superseded_at = models.DateTimeField(null=True)
    objects = MirrorCommitQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["mirror", "commit"], name="mirror_commit")]
        indexes = [
            models.Index(fields=["mirror", "commit"], condition=Q(record="pending"), name="mirror_commit_to_copy"),
            models.Index(
                fields=["mirror", "commit"], condition=Q(data__in=["unknown", "waiting"]), name="mirror_commit_to_check"
            ),
            models.Index(fields=["mirror", "commit"], condition=Q(history=False), name="mirror_commit_open_history"),
            models.Index(fields=["waiver"], condition=Q(waiver__isnull=False), name="mirror_commit_waived"),
            models.Index(fields=["mirror", "commit"], condition=Q(urgency__gt=0), name="mirror_commit_urgent"),
        ]


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
        help_text="beyond the mirror's own: the depth that a check on demand found it damaged at",
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

    objects = CoverageQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["mirror", "range_id"], name="coverage_range")]
        indexes = [
            models.Index(fields=["mirror", "verify_at"], name="coverage_to_verify"),
            models.Index(fields=["mirror", "max_key"], name="coverage_keys"),
        ]


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
    damage = models.BooleanField(default=False, help_text="what holds it had been complete: found when checked again")
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
            models.Index(fields=["mirror", "id"], condition=Q(gone_at_source=False), name="blocker_waited_for"),
            models.Index(
                fields=["mirror", "id"], condition=Q(damage=True, gone_at_source=False), name="blocker_damage"
            ),
        ]
        ordering = ["first_seen", "pk"]


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

    class Meta:
        constraints = [models.UniqueConstraint(fields=["mirror", "minutes", "began_at"], name="measure_once")]
        indexes = [models.Index(fields=["mirror"], condition=Q(settled=False), name="measure_unsettled")]
        ordering = ["began_at"]


class Run(models.Model):
    """A check's life and progress."""

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


class PlaceLock(models.Model):
    """One row: who wants a place for a mirror or an export holds it while looking whose the places are."""

    taken_at = models.DateTimeField(null=True)
