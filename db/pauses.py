"""The columns of what can be paused, the same for mirrors and exports."""

from __future__ import annotations

from django.db import models

from core.pauses import ENDED, LONGEST_NAME, LONGEST_REASON, Pause


class Pausable(models.Model):
    """A row that somebody may pause. A version that knows `paused` alone resumes without clearing the rest: nothing of
    it counts while `paused` is false, and `forget_ended` takes it away."""

    paused = models.BooleanField(default=False)
    pause_reason = models.CharField(max_length=LONGEST_REASON, default="", db_default="", blank=True)
    paused_until = models.DateTimeField(null=True, help_text="when the pause was meant to end; null: nobody said")
    paused_at = models.DateTimeField(null=True, help_text="when it was paused; null: not, or by an older version")
    paused_by = models.CharField(max_length=LONGEST_NAME, default="", db_default="", blank=True)

    class Meta:
        abstract = True

    @property
    def pause(self) -> Pause | None:
        """The pause of now."""
        if not self.paused:
            return None
        return Pause(self.pause_reason, self.paused_until, self.paused_at, self.paused_by)

    @classmethod
    def forget_ended(cls) -> int:
        """Clear what was said of pauses that an older version ended; gives of how many."""
        return cls._default_manager.filter(paused=False, paused_at__isnull=False).update(**ENDED)
