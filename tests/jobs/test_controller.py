"""The clock sends what is due and looks again when the next duty is."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError
from django_q.models import OrmQ

from db.clock import after_now
from deployment import config
from jobs.management.commands import controller
from jobs.models import Duty
from jobs.querysets import DutyQuerySet

pytestmark = pytest.mark.django_db(transaction=True)


def due_in(seconds: float, **fields: Any) -> Duty:
    """A duty of ours that is due so many seconds from now."""
    queue = fields.pop("queue", config.current().worker_queue)
    return Duty.objects.create(kind="sense", subject=1, queue=queue, due_at=after_now(seconds), **fields)


def test_a_due_duty_is_sent_once() -> None:
    due_in(-1)
    controller.tick()
    controller.tick()
    assert OrmQ.objects.count() == 1


def test_the_clock_looks_again_when_the_next_duty_is_due() -> None:
    due_in(0.3)
    assert 0.2 < controller.tick() <= 0.3


@pytest.mark.parametrize("seconds", [30, 0.01])
def test_it_looks_neither_later_than_a_tick_nor_without_a_pause(seconds: float) -> None:
    due_in(seconds)
    assert controller.LEAST_SECONDS <= controller.tick() <= controller.TICK_SECONDS


def test_what_others_do_or_somebody_works_on_is_not_waited_for() -> None:
    due_in(0.1, queue="ap-south-1")
    Duty.objects.create(
        kind="copy", subject=1, queue=config.current().worker_queue, due_at=after_now(0.1), until=after_now(60)
    )
    assert controller.tick() == controller.TICK_SECONDS


def test_a_database_that_does_not_answer_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: DutyQuerySet) -> list[tuple[int, str]]:
        raise DatabaseError("gone fishing")

    monkeypatch.setattr(DutyQuerySet, "to_send", fails)
    assert controller.tick() == controller.TICK_SECONDS
    assert "gone fishing" in caplog.text
