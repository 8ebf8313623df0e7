"""Merges that a source's lakeFS asked about before it moved a branch, and heads that came without such a question."""

from __future__ import annotations

from django.db import models

from db.fields import ExactTextField


class HeldMerge(models.Model):
    """One question of lakeFS: may this branch move to this merge commit? And what became of it."""

    class State(models.TextChoices):
        HELD = "held", "Held"
        RELEASED = "released", "Released"
        ALLOWED = "allowed", "Allowed late"
        REFUSED = "refused", "Refused"
        NOT_TAKEN = "not-taken", "Not taken"
        UNGATED = "ungated", "Ungated"

    # Without a constraint: the version before, which deletes repositories, does not know of these rows.
    repository = models.ForeignKey(
        "mirrors.Repository", models.CASCADE, related_name="held_merges", db_constraint=False
    )
    branch = models.CharField(max_length=256)
    commit_id = models.CharField(max_length=64, help_text="the merge commit, which is no head yet")
    merge_source = models.CharField(max_length=256, blank=True, default="")
    state = models.CharField(max_length=16, choices=State.choices, default=State.HELD)
    copies = models.IntegerField(default=1, help_text="so many regions were wanted")
    when_late = models.CharField(max_length=16, default="refuse")
    complete_in = models.JSONField(default=list, help_text="the regions where it was proven whole when it was released")
    detail = ExactTextField(blank=True, default="", help_text="what was answered, or why its record can't be read")
    held_at = models.DateTimeField()
    until = models.DateTimeField(help_text="when an answer is given at the latest")
    ended_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True, help_text="when the branch was seen at it, or at what descends from it")
    wanted = models.BooleanField(default=True, help_text="mirrors keep it: what arrived of it serves the next try")

    class Meta:
        indexes = [
            models.Index(fields=["repository", "wanted", "state"], name="held_merge_wanted"),
            models.Index(fields=["repository", "-held_at"], name="held_merge_latest"),
            models.Index(fields=["state", "until"], name="held_merge_open"),
        ]
        ordering = ["-held_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.commit_id[:8]} into {self.branch}: {self.state}"
