"""Leases: who does the work, what a wake-up means, and what a worker that lost its lease may still do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest
from django.db.models.functions import Now

from core.errors import Denied, Fenced, Unreachable
from db.clock import after_now
from deployment import config
from jobs import duties
from jobs.lease import LEASE_SECONDS, DutyOutcome, Lease
from jobs.models import Duty, JobLine
from jobs.querysets import DutyQuerySet
from tests.deployment.test_config import SOURCE
from tests.jobs.work import every_minute

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sent() -> Iterator[mock.Mock]:
    with mock.patch("jobs.duties.async_task") as messages:
        yield messages


@pytest.fixture
def duty(sent: mock.Mock) -> Duty:
    return Duty.objects.create(kind="copy", subject=1, queue="us", due_at=datetime.now(UTC) - timedelta(seconds=1))


def run(duty: Duty, work: object = lambda lease: DutyOutcome("done"), holder: str = "w1") -> str:
    with every_minute("copy", work):
        return duties.run(duty.pk, holder=holder)


def test_a_duty_that_is_due_is_done_and_due_again_after_its_interval(duty: Duty) -> None:
    assert run(duty) == "done"
    duty.refresh_from_db()
    ahead = (duty.due_at - datetime.now(UTC)).total_seconds()
    assert 50 < ahead < 61
    assert (duty.holder, duty.until, duty.failures) == ("", None, 0)
    assert run(duty) == "not due, or run by another worker"


def test_a_second_worker_loses(duty: Duty) -> None:
    inner: list[str] = []

    def work(lease: Lease) -> DutyOutcome:
        Duty.objects.filter(pk=duty.pk).update(due_at=Now())
        inner.append(run(duty, holder="w2"))
        return DutyOutcome("done")

    assert run(duty, work) == "done"
    assert inner == ["not due, or run by another worker"]


def test_a_wake_up_during_the_work_makes_it_due_again_at_once(duty: Duty, sent: mock.Mock) -> None:
    def work(lease: Lease) -> DutyOutcome:
        duties.wake("copy", 1)
        return DutyOutcome("done")

    run(duty, work)
    assert sent.call_count == 1
    assert run(duty) == "done"


def test_waking_twice_sends_one_message(duty: Duty, sent: mock.Mock) -> None:
    duties.wake("copy", 1)
    duties.wake("copy", 1)
    assert sent.call_count == 1


def test_one_that_is_claimed_while_it_is_woken_is_woken_again_when_it_ends(duty: Duty, sent: mock.Mock) -> None:
    """Its own message would be refused, and wait for MESSAGE_SECONDS until somebody sends another one."""
    claim = {"holder": "w1", "lease": 30, "interval": 60}
    take = DutyQuerySet._take_message

    def claimed_first(rows: DutyQuerySet, pk: int) -> bool:
        assert Duty.objects.claim(pk, **claim)
        return take(rows, pk)

    with mock.patch.object(DutyQuerySet, "_take_message", claimed_first):
        assert Duty.objects.wake(kind="copy", subject=1) == []
    assert Duty.objects.wake(kind="copy", subject=1) == []
    attempt = Duty.objects.get().attempt
    assert Duty.objects.release(duty.pk, holder="w1", attempt=attempt, next_in=60)
    assert Duty.objects.all().to_send() == [(duty.pk, "us")]


def test_one_that_wants_another_turn_at_once_is_sent_at_once(duty: Duty, sent: mock.Mock) -> None:
    at_once = Duty.objects.annotate(due=after_now(0)).filter(due__lte=Now(), due__gte=Now())
    assert at_once.exists()  # within one statement the clock stands still
    run(duty, lambda lease: DutyOutcome("more", 0.0))
    assert sent.call_count == 1


def test_a_message_that_nobody_answered_is_sent_again(duty: Duty, sent: mock.Mock) -> None:
    duties.wake("copy", 1)
    Duty.objects.update(woken_at=datetime.now(UTC) - timedelta(seconds=6))
    duties.send(Duty.objects.all().to_send())
    assert sent.call_count == 2


def test_a_lease_that_ran_out_is_taken_over_and_its_old_holder_is_fenced(duty: Duty) -> None:
    def work(lease: Lease) -> DutyOutcome:
        lease.fence(1)
        Duty.objects.filter(pk=duty.pk).update(until=datetime.now(UTC) - timedelta(seconds=1), due_at=Now())
        assert run(duty, holder="w2") == "done"
        with pytest.raises(Fenced):
            lease.fence(1)
        lease.renewed -= 1000
        with pytest.raises(Fenced):
            lease.renew()
        return DutyOutcome("too late")

    run(duty, work)
    duty.refresh_from_db()
    assert (duty.attempt, duty.outcome) == (2, "done")


def test_a_take_over_leaves_a_trace_in_the_log_of_the_task(duty: Duty) -> None:
    past = datetime.now(UTC) - timedelta(seconds=5)
    Duty.objects.filter(pk=duty.pk).update(holder="host:1:ab", until=past)
    assert run(duty) == "done"
    told = "was taken over from worker host:1:ab, which stopped answering while it ran"
    assert told in JobLine.objects.get(level="WARNING").text


def test_a_lease_that_ends_before_the_call_would_is_no_lease(duty: Duty) -> None:
    def work(lease: Lease) -> DutyOutcome:
        with pytest.raises(Fenced):
            lease.fence(LEASE_SECONDS + 5)
        return DutyOutcome("done")

    assert run(duty, work) == "done"


@pytest.mark.parametrize(
    ("error", "soon"), [(Unreachable("away"), True), (Denied("no right"), False), (ZeroDivisionError(), True)]
)
def test_a_failure_is_written_down_and_tried_again_when_that_makes_sense(
    duty: Duty, error: Exception, soon: bool
) -> None:
    def work(lease: Lease) -> DutyOutcome:
        raise error

    run(duty, work)
    duty.refresh_from_db()
    assert (duty.failures, duty.refusal) == (1, getattr(error, "permanent", ""))
    assert duty.outcome
    assert ((duty.due_at - datetime.now(UTC)).total_seconds() < 10) is soon
    Duty.objects.update(due_at=Now())
    run(duty)
    duty.refresh_from_db()
    assert (duty.failures, duty.outcome, duty.refusal) == (0, "done", "")


@pytest.mark.parametrize(("error", "failures"), [(Unreachable("away"), 20), (Denied("no right"), 0)])
def test_cooldown_on_error_is_the_longest_pause_after_a_failure(
    duty: Duty, monkeypatch: pytest.MonkeyPatch, error: Exception, failures: int
) -> None:
    def work(lease: Lease) -> DutyOutcome:
        raise error

    told = config.parse({**SOURCE, "validator": {"cooldown_on_error": "7s"}})
    monkeypatch.setattr(config, "current", lambda: told)
    Duty.objects.update(failures=failures)
    run(duty, work)
    duty.refresh_from_db()
    assert 5 < (duty.due_at - datetime.now(UTC)).total_seconds() <= 7
