"""What somebody had LakeMirror copy once for a mirror whose objects the stores replicate."""

from __future__ import annotations

from django.db import models


class BroughtOnRequest(models.Model):
    """Who asked last, and when; null: nobody has, or it has ended. Which files, their blockers say."""

    bring_at = models.DateTimeField(
        null=True, help_text="when somebody last had LakeMirror copy something once; null: nobody, or it has ended"
    )
    bring_by = models.CharField(max_length=150, default="", db_default="", blank=True, help_text="who that was")
    bring_all_at = models.DateTimeField(
        null=True, help_text="when somebody had LakeMirror copy all that is missing once; null: nobody, or it has ended"
    )
    bring_all_by = models.CharField(max_length=150, default="", db_default="", blank=True, help_text="who that was")
    bring_upto = models.BigIntegerField(
        null=True, help_text="the key of the newest MirrorCommit then: what later ones lack is not part of it"
    )

    class Meta:
        abstract = True
