"""Checks that somebody asked for: when they will be done, as far as that is known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.text.eta import expected_end
from jobs.job_ids import JobType, job_id
from mirrors.models import Validation


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationStatus:
    """A check that somebody asked for, and when it will be done, as far as that is known."""

    validation: Validation
    eta: datetime | None

    @property
    def id(self) -> str:
        """Its name as a job."""
        return job_id(JobType.VALIDATION, self.validation.pk)

    @property
    def tone(self) -> str:
        """Its state's colour."""
        return {"running": "busy", "retrying": "warn", "done": "good"}.get(self.validation.state, "quiet")

    @property
    def icon(self) -> str:
        """Its state's icon."""
        icons = {"running": "half", "retrying": "retry", "done": "check", "stopped": "stop"}
        return icons.get(self.validation.state, "clock")


def expected_of(validation: Validation, now: datetime) -> datetime | None:
    """When a check that was asked for will be done: known once all of its metaranges are read."""
    if validation.ended_at is not None or validation.started_at is None or validation.metaranges:
        return None
    return expected_end(validation.ranges_done, validation.ranges, validation.started_at, now)
