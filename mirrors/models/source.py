"""Sources as last seen: repositories, their commits, branches and tags. Rows of `Commit` are inserted parents first, so
ordering by primary key is a topological order."""

from __future__ import annotations

from typing import Any

from django.db import models

from core import types
from db.fields import ExactJSONField, ExactTextField


class Repository(models.Model):
    """A source repository, pinned by its creation date and namespace at the first look."""

    region = models.CharField(max_length=64)
    name = models.CharField(max_length=64)
    storage_namespace = models.CharField(max_length=1024)
    creation_date = models.BigIntegerField(help_text="Unix seconds, as the source gives it")
    default_branch = models.CharField(max_length=256)
    looked_at = models.DateTimeField(null=True, help_text="last valid look at its branches")
    look_error = ExactTextField(blank=True)
    tags_unseen_since = models.DateTimeField(
        null=True, help_text="since when nobody has seen its tags; null: the last look did"
    )
    frozen_reason = ExactTextField(
        blank=True, help_text="why nothing moves any more: the source is not the one we pinned"
    )
    unrelated_roots = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="roots that the last look saw whose histories share no commit with what is known, and since when",
    )
    unrelated_since = models.DateTimeField(null=True, help_text="of an older version, as one time for all of them")

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
    metadata = ExactJSONField(default=dict)
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
        indexes = [models.Index(fields=["repository", "seen_at"], name="commit_seen")]


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
    # -1: not read yet, or not since a rebuild; the head is then what a mirror's certificate proves, "" if there is none
    position = models.BigIntegerField(help_text="of the newest candidate")
    changed_at = models.DateTimeField(help_text="when the sensor first saw this head")
    hidden = models.BooleanField(
        null=True, help_text="left out of listings that don't ask for such; null: not known yet"
    )
    missing_since = models.DateTimeField(null=True)
    missing_looks = models.IntegerField(default=0)
    gone_at = models.DateTimeField(null=True)
    unread_head = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="it moved on to this one, whose history can't be read",
    )
    unread_since = models.DateTimeField(null=True, help_text="when the first of such heads in a row was seen")
    unread_head_at = models.DateTimeField(
        null=True,
        help_text="when a head was seen first of which all since are descendants; null: in the very first look",
    )
    begun_at = models.DateTimeField(null=True, help_text="when it was first seen, if none of its heads was read then")

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
    # "": its first commit has not been read yet
    seen_at = models.DateTimeField(help_text="when the sensor first saw it at this commit")
    unread_commit = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="it names this one now, which can't be read yet"
    )
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

    At positions below -1: what a default branch only is inferred to have pointed to (mirroring/sense/inferred.py).
    """

    branch = models.ForeignKey(SourceBranch, models.CASCADE, related_name="candidates")
    position = models.BigIntegerField()
    commit = models.ForeignKey(Commit, models.CASCADE, related_name="candidacies")
    seen_at = models.DateTimeField()
    fast_forward = models.BooleanField(default=True, help_text="false when the move to it was no fast-forward")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["branch", "position"], name="candidate_position")]
        ordering = ["position"]
