"""Sweeps of mirrors that follow their source's garbage collection."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from core.sweeping import APART, USUAL_MOST, USUAL_PERCENT
from db.fields import ExactTextField


class FollowsCollection(models.Model):
    """Whether, and with which bounds, a mirror follows its source's garbage collection."""

    follow_gc = models.BooleanField(
        default=False, db_default=False, help_text="deletes what the source's garbage collection took, a week later"
    )
    delete_percent = models.IntegerField(
        default=USUAL_PERCENT,
        db_default=USUAL_PERCENT,
        help_text="more of its objects are deleted at once only when somebody has approved it",
    )
    delete_most = models.IntegerField(
        default=USUAL_MOST, db_default=USUAL_MOST, help_text="the same as a number of objects"
    )
    sweep_asked = models.BooleanField(default=False, db_default=False, help_text="somebody wants the next sweep now")
    swept = models.BigIntegerField(default=0, db_default=0, help_text="objects that sweeps have deleted so far")
    swept_bytes = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        abstract = True


class Sweep(models.Model):
    """A look through a mirror's namespace for what nobody needs any more, and what became of that.

    What it found lies in files at the destination (core/sweeping.py says what): the rows' digests tell whether they are
    as they were written.
    """

    class State(models.TextChoices):
        LOOKING = "looking", "Looking"
        WAITING = "waiting", "Waiting for approval"
        DELETING = "deleting", "Deleting"
        DONE = "done", "Done"
        FROZEN = "frozen", "Nothing deleted"
        REJECTED = "rejected", "Rejected"
        EXPIRED = "expired", "Expired"
        ENDED = "ended", "Ended early"

    # Without a constraint: the version before, which deletes mirrors, does not know of these rows.
    mirror = models.ForeignKey("mirrors.Mirror", models.CASCADE, related_name="sweeps", db_constraint=False)
    state = models.CharField(max_length=16, choices=State.choices, default=State.LOOKING)
    reason = ExactTextField(blank=True, default="", help_text="why it waits, or deletes nothing")
    pins = models.CharField(max_length=64, help_text="digest of the two repositories and stores that it is about")
    began_at = models.DateTimeField()
    looked_at = models.DateTimeField(null=True, help_text="when all of the namespace had been looked through")
    ended_at = models.DateTimeField(null=True)
    listed = models.BigIntegerField(default=0, help_text="objects in the namespace")
    listed_bytes = models.BigIntegerField(default=0)
    found = models.BigIntegerField(default=0, help_text="those that nobody names and the source has no more")
    found_bytes = models.BigIntegerField(default=0)
    due = models.BigIntegerField(default=0, help_text="those of them that a sweep a week before had found too")
    due_bytes = models.BigIntegerField(default=0)
    digest = models.CharField(max_length=64, blank=True, default="", help_text="SHA-256 of the list of what was found")
    kept_digest = models.CharField(
        max_length=64, blank=True, default="", help_text="SHA-256 of the list of what is kept"
    )
    tried = models.BigIntegerField(default=0, help_text="so many of what is due have had their turn")
    deleted = models.BigIntegerField(default=0)
    deleted_bytes = models.BigIntegerField(default=0)
    deleted_at = models.DateTimeField(null=True, help_text="when it last began to delete something")
    under_way = models.JSONField(
        null=True,
        help_text="places, in the list of what is due, of those that may be deleted and are not counted",
    )
    spared = models.BigIntegerField(default=0, help_text="those that had come to be needed, or changed, when it was up")
    locked = models.BigIntegerField(default=0, help_text="those that the store does not let anybody delete yet")
    refused = models.BigIntegerField(default=0, help_text="those of which the store refused the deletion")
    expires_at = models.DateTimeField(null=True, help_text="until when it may be approved")
    decided_by = models.CharField(max_length=150, blank=True, default="")
    decided_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["mirror", "-id"], name="sweep_latest")]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"sweep {self.pk} of {self.mirror_id}: {self.state}"

    @property
    def is_open(self) -> bool:
        """Whether something may yet come of it."""
        return self.state in OPEN

    @property
    def deleted_lately(self) -> int:
        """Objects that other sweeps have deleted without asking anybody since a week before this one began. They count
        for its bounds: whoever has sweeps made more often has no more deleted at once.

        All of a sweep counts by when it last deleted, and what may have been deleted as if it was: never too little.
        """
        unasked = Q(decided_by="") | Q(state=Sweep.State.REJECTED)  # of that nothing went once somebody was asked
        others = Sweep.objects.filter(unasked, deleted_since(self.began_at - APART), mirror=self.mirror_id)
        rows = others.exclude(pk=self.pk).values_list("deleted", "under_way")
        return sum(deleted + len(under_way or ()) for deleted, under_way in rows)


def deleted_since(moment: datetime) -> Q:
    """Sweeps that have deleted something after that. A version before noted no more than when they ended."""
    ended = Q(ended_at=None) | Q(ended_at__gt=moment)
    return Q(deleted_at__gt=moment) | Q(deleted_at=None, deleted__gt=0) & ended


OPEN = (Sweep.State.LOOKING, Sweep.State.WAITING, Sweep.State.DELETING)
