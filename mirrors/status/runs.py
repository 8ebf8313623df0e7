"""The checks of a mirror, mostly Spark jobs, and those that somebody asked for: which go on, how fast, and when they
will be done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.text.eta import expected_end, per_second
from jobs.job_ids import JobType, job_id
from jobs.models import Duty
from mirrors.models import Mirror, MirrorDuty, Run, Validation


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A check and how fast it goes. One without an end whose worker is gone is `lost`: nobody goes on with it."""

    run: Run
    running: bool
    seconds: float | None
    rate: float | None
    eta: datetime | None

    @property
    def id(self) -> str:
        """Its name as a job."""
        return job_id(JobType.RUN, self.run.pk)

    @property
    def lost(self) -> bool:
        """Whether it ended without a word."""
        return self.run.ended_at is None and not self.running


def run_status(run: Run, *, now: datetime, held: bool) -> RunStatus:
    """One that has no end is running only while the mirror's validation is `held`: else its worker is lost."""
    running = run.ended_at is None and held
    until = run.ended_at or (now if running else None)
    return RunStatus(
        run=run,
        running=running,
        seconds=(until - run.started_at).total_seconds() if until else None,
        rate=per_second(run.entries, run.started_at, until) if until else None,
        eta=expected_end(run.ranges_done, run.ranges, run.started_at, now) if running else None,
    )


def is_held(mirror: Mirror, now: datetime) -> bool:
    """Whether somebody works on the mirror's validation."""
    return Duty.objects.filter(kind=MirrorDuty.VALIDATE, subject=mirror.pk, until__gt=now).exists()


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
