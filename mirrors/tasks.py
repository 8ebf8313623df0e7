"""What the queues call: the name stands in messages that wait."""

from __future__ import annotations

from deployment import config
from installations import refresh
from jobs import duties


def run_duty(duty_id: int) -> str:
    """A wake-up: do the duty's work if it is due and nobody else has it."""
    refresh.refresh()
    with config.snapshot():
        return duties.run(duty_id)
