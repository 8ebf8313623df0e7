"""Tables of what is proven beside ranges, and of moves that are about to be made."""

from __future__ import annotations

from django.db import models


class MetarangeCoverage(models.Model):
    """A metarange as it was last found at a mirror's destination; verified again in its turn, as ranges are."""

    class State(models.TextChoices):
        COMPLETE = "complete"
        GONE = "gone"
        WAITING = "waiting"

    # Without a constraint: the version before, which deletes mirrors, does not know of these rows.
    mirror = models.ForeignKey("mirrors.Mirror", models.CASCADE, related_name="metaranges", db_constraint=False)
    metarange_id = models.CharField(max_length=64)
    state = models.CharField(max_length=16, choices=State.choices)
    ranges = models.IntegerField(default=0, help_text="how many it names")
    checked_at = models.DateTimeField()
    verify_at = models.DateTimeField(null=True, help_text="when it is looked for again; null while it has a blocker")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["mirror", "metarange_id"], name="metarange_coverage_once")]
        indexes = [models.Index(fields=["mirror", "verify_at"], name="metarange_to_verify")]

    def __str__(self) -> str:
        return f"{self.metarange_id[:8]} {self.state}"


class MoveIntent(models.Model):
    """A move that was decided on, written down in the transaction that judged it, before the call that makes it.

    Who finds a ref at `to_commit` while the row stands knows that it was us. One row for each ref and commit: a call
    that was given up may still be carried out after a later one.
    """

    mirror = models.ForeignKey("mirrors.Mirror", models.CASCADE, related_name="intents", db_constraint=False)
    name = models.CharField(max_length=256, help_text="of the branch; of the tag with `is_tag`")
    is_tag = models.BooleanField(default=False)
    from_commit = models.CharField(max_length=64, blank=True)
    to_commit = models.CharField(max_length=64, blank=True, help_text="empty: to be deleted")
    position = models.BigIntegerField(default=-1, help_text="of the candidate that it is")
    why = models.CharField(max_length=64)
    facts_epoch = models.BigIntegerField(default=0, help_text="the mirror's when it was judged")
    delete_asked = models.BooleanField(
        default=False,
        db_default=False,
        help_text="no longer selected since, and an operator wants it deleted, should it be made after all",
    )
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["mirror", "is_tag", "name", "to_commit"], name="move_intent_once")
        ]

    def __str__(self) -> str:
        return f"{self.name} to {self.to_commit[:8] or 'nothing'}"
