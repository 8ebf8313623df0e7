"""Mirrors: settings and state, and their branches, tags and commits."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from core.bringing import DEFAULT_WORKERS, ObjectReplication
from core.mirroring.branch_selection import ALL, Selection
from db.fields import ExactTextField
from db.labels import Labelled
from db.pauses import Pausable
from mirrors.models.on_request import BroughtOnRequest
from mirrors.models.querysets import (
    MirrorCommitQuerySet,
    MirrorQuerySet,
)
from mirrors.models.source import Commit, Repository
from mirrors.models.sweep import FollowsCollection


def all_branches() -> dict[str, list[str]]:
    """The selection of a mirror that follows every branch."""
    return {"include": list(ALL), "exclude": []}


class Mirror(Pausable, Labelled, FollowsCollection, BroughtOnRequest):
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
    object_replication = models.CharField(
        max_length=16, default="native", db_default="native", help_text="who copies its objects: native or managed"
    )
    copying_paused = models.BooleanField(
        default=False, db_default=False, help_text="nothing is brought, while checks and promotion go on"
    )
    copy_workers = models.IntegerField(
        default=DEFAULT_WORKERS, db_default=DEFAULT_WORKERS, help_text="objects that are brought at once"
    )
    copy_bytes_per_second = models.BigIntegerField(null=True, help_text="at most so many are brought; null: any number")
    copy_objects_per_second = models.IntegerField(null=True, help_text="at most so many are brought; null: any number")
    branch_priority = models.JSONField(
        default=list,
        db_default=[],
        help_text="globs of branches whose heads are brought first, after the default one's",
    )
    copied = models.BigIntegerField(default=0, db_default=0, help_text="objects that were brought so far")
    copied_bytes = models.BigIntegerField(default=0, db_default=0)
    hold = models.JSONField(
        default=list, db_default=[], help_text="merges that wait until regions have them: core/holding.py"
    )
    held_since = models.DateTimeField(null=True, help_text="since when it holds merges; null: it does not")
    rpo_seconds = models.IntegerField(null=True, help_text="how late a branch may be; null: core.mirroring.rpo")
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
    proving_records = models.BooleanField(
        default=False, db_default=False, help_text="records were sent again, and nobody heard yet if one was lost"
    )
    gc_rules = models.JSONField(
        null=True,
        help_text="rules of garbage collection as last read at both sides: core/mirroring/explain/gc_rules.py",
    )
    gc_rules_at = models.DateTimeField(null=True, help_text="when they were last asked for")
    replication = models.JSONField(
        null=True,
        help_text="what keeps the stores' replication, by causes: mirrors/transitions/causes.py; null: nothing",
    )
    last_validated_at = models.DateTimeField(null=True)
    destination_looked_at = models.DateTimeField(null=True, help_text="last look at the branches there")
    resumed_at = models.DateTimeField(
        null=True, help_text="when a round of promotion found that there had been none for a while"
    )
    tags_unseen_since = models.DateTimeField(
        null=True, help_text="since when nobody has seen the tags there; null: the last look did"
    )

    objects = MirrorQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["region", "storage_namespace"], name="mirror_namespace"),
        ]
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def audit_name(self) -> str:
        """The subject of events about it."""
        return f"mirror/{self.name}"

    @property
    def namespace(self) -> str:
        """Where its objects lie, to put a `/` and a key behind."""
        return self.storage_namespace.rstrip("/")

    @property
    def brings(self) -> bool:
        """Whether what is missing is brought now: never into a repository, or from a source, that is in doubt."""
        managed = self.object_replication == ObjectReplication.MANAGED and not self.copying_paused
        return managed and self.state == self.State.ACTIVE and not self.source.frozen_reason

    @property
    def brings_on_request(self) -> bool:
        """Whether somebody may have what the stores have not brought copied once: never of one that is paused, nor into
        a repository, or from a source, that is in doubt."""
        native = self.object_replication == ObjectReplication.NATIVE and not self.paused
        return native and self.state == self.State.ACTIVE and not self.source.frozen_reason

    @property
    def sweeps_now(self) -> bool:
        """Whether it follows its source's garbage collection, and is neither paused nor in doubt."""
        return self.follow_gc and self.brings and not self.paused

    @property
    def selection(self) -> Selection:
        """Which branches of its source it follows."""
        return Selection(self.source.default_branch, tuple(self.selected["include"]), tuple(self.selected["exclude"]))


class Waiver(models.Model):
    """An operator accepts that some commits of a mirror are unreadable there: history that was never replicated.

    Or that some objects are missing, for all commits that hold them (`WaivedObject`).
    """

    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="waivers")
    reason = models.CharField(max_length=1000)
    given_by = models.CharField(max_length=150)
    given_at = models.DateTimeField()
    unneeded = models.JSONField(
        null=True,
        help_text="keys of its commits that no selected branch leads to now: it holds for them again if one does",
    )


class WaivedObject(models.Model):
    """An object that a waiver accepts as missing at a mirror, whichever commits hold it now or later.

    `address` is as blockers have it: relative to the namespace or, if `full`, a URI.
    """

    # Without a constraint: the version before, which withdraws waivers, does not know of these rows.
    waiver = models.ForeignKey(Waiver, models.CASCADE, related_name="objects_waived", db_constraint=False)
    mirror = models.ForeignKey(Mirror, models.CASCADE, related_name="waived_objects", db_constraint=False)
    address = models.TextField()
    address_hash = models.CharField(max_length=32)
    full = models.BooleanField(default=False)
    path = models.TextField(blank=True, help_text="where a commit has it; others may have it elsewhere")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["mirror", "address_hash", "full"], name="waived_object_once"),
        ]

    def __str__(self) -> str:
        return self.path or self.address


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
    placed = models.CharField(
        max_length=64,
        default="",
        db_default="",
        blank=True,
        help_text="the commit to which a call of ours brought it, after a proof of all records below",
    )
    proven = models.BooleanField(
        default=False, db_default=False, help_text="its head is proven whole now: kept by transitions/proven_heads.py"
    )
    looked_at = models.DateTimeField(null=True, help_text="last look for uncommitted changes")
    unlooked_since = models.DateTimeField(
        null=True, help_text="since when no such look got an answer; null: the last one did"
    )
    look_error = ExactTextField(default="", db_default="", blank=True, help_text="what the last such look met")
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
    stands_at = models.CharField(
        max_length=64,
        null=True,
        help_text="where it was found instead; empty: it is not there. Null: where it was made",
    )

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
    resent = models.BooleanField(
        default=False, db_default=False, help_text="its record was sent again, and nobody heard yet if it was lost"
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
            models.Index(
                fields=["mirror", "promoted_at"], condition=Q(promoted_at__isnull=False), name="mirror_commit_promoted"
            ),
            models.Index(
                fields=["mirror", "superseded_at"],
                condition=Q(superseded_at__isnull=False),
                name="mirror_commit_superseded",
            ),
            models.Index(fields=["mirror", "commit"], condition=Q(urgency__gt=0), name="mirror_commit_urgent"),
        ]


class PlaceLock(models.Model):
    """One row: who wants a place for a mirror or an export holds it while looking whose the places are."""

    taken_at = models.DateTimeField(null=True)
