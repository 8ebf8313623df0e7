"""What the queues call."""

from __future__ import annotations

from deployment import config
from installations import refresh
from jobs import duties
from jobs.models import Duty
from mirrors.engine.copy_records import copy
from mirrors.engine.manage import manage
from mirrors.engine.promote.branches import promote
from mirrors.engine.sense.branches import sense
from mirrors.engine.validate.commits import validate


def handlers() -> dict[str, tuple[duties.Handler, float]]:
    """What does each kind of duty, and its interval in seconds."""
    now = config.current()
    manage_every = now.mirrors_manager.process_mirrors_interval_duration.total_seconds()
    sense_every = now.commit_sensor.process_branches_duration.total_seconds()
    validate_every = now.validator.run_interval.total_seconds()
    return {
        Duty.Kind.MANAGE: (manage, manage_every),
        Duty.Kind.SENSE: (sense, sense_every),
        Duty.Kind.COPY: (copy, sense_every),
        Duty.Kind.VALIDATE: (validate, validate_every),
        Duty.Kind.PROMOTE: (promote, validate_every),
        **{guest.kind: (guest.handler, guest.interval()) for guest in duties.guests()},
    }


def run_duty(duty_id: int) -> str:
    """A wake-up: do the duty's work if it is due and nobody else has it."""
    refresh.refresh()
    return duties.run(duty_id, handlers())
