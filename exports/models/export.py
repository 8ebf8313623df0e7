"""An export: how a branch is exported, and where it stands.

It is of one branch of one source repository, and needs no mirror of it. A branch may have several, with names.
Decisions are made by core/exporting/state_machine.py.
"""

from __future__ import annotations

from django.db import models

from core.access.policies import branch_arn
from core.exporting import manifests, names, state_machine
from db.fields import ExactTextField
from db.labels import Labelled
from db.pauses import Pausable
from exports.querysets import ExportQuerySet


class Export(Pausable, Labelled):
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
    name = models.CharField(
        max_length=names.LONGEST,
        blank=True,
        default="",
        db_default="",
        help_text="tells it from other exports of the branch; empty: the one without a name",
    )
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
    store_at_success = models.CharField(
        max_length=300, null=True, blank=True, help_text="the host of that place's store; null: nobody knows"
    )
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
    gone = models.CharField(
        max_length=16, blank=True, default="", db_default="", help_text="what was deleted at the source: core's Gone"
    )
    gone_since = models.DateTimeField(null=True, help_text="when that was first seen")
    gone_looked_at = models.DateTimeField(null=True, help_text="when that was last seen")
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
        constraints = [
            models.UniqueConstraint(fields=["region", "repository", "branch", "name"], name="export_of_name_once")
        ]
        ordering = ["repository", "branch", "name", "pk"]

    def __str__(self) -> str:
        return f"{self.repository}/{self.which} ({self.region})"

    @property
    def which(self) -> str:
        """What names it among the exports of its repository: `branch`, or `branch:name`."""
        return names.joined(self.branch, self.name)

    @property
    def identity(self) -> dict[str, str]:
        """The columns that say which export it is: no two have all of them alike."""
        return {column: getattr(self, column) for column in ("region", "repository", "branch", "name")}

    @property
    def arn(self) -> str:
        """The branch as a resource."""
        return branch_arn(self.repository, self.branch)

    @property
    def audit_name(self) -> str:
        """The subject of events about it."""
        return f"export/{self.region}/{self.repository}/{self.which}"

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
