"""The heartbeat goes out while all is at work, and stops when something is not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from db import clock
from deployment.reader import Secret
from jobs import deployments
from jobs.models import Deployment as Announced
from jobs.models import Duty
from notifications import heartbeat, rounds
from tests.mirrors.harness import Deployment
from tests.notifications.receiver import Receiver

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def alive(lm: Deployment, there: Receiver, tell: Any) -> None:
    """The controller was just here, what is wrong was just looked for, and a heartbeat is configured."""
    tell(heartbeat_url=Secret(f"{there.url}/t0ken"))
    deployments.announce()
    rounds.look_round()
    lm.run(Duty.objects.get(kind=rounds.DUTY).pk)


def beat(lm: Deployment) -> str:
    heartbeat.look_round()
    return lm.run(Duty.objects.get(kind=heartbeat.DUTY).pk)


def test_the_url_is_asked_for_while_all_is_at_work(lm: Deployment, there: Receiver) -> None:
    assert beat(lm) == "sent: 200" and there.asked == ["/t0ken"]


def test_not_without_a_controller(lm: Deployment, there: Receiver) -> None:
    Announced.objects.update(seen_at=clock.now() - timedelta(minutes=2))
    assert beat(lm) == "not sent: the controller has not reported for a minute" and not there.asked


def test_not_while_the_spark_queue_has_no_worker(lm: Deployment, there: Receiver, head: str) -> None:
    past = clock.now() - timedelta(minutes=10)
    validate = Duty.objects.filter(kind="validate")
    validate.update(queue="us-east-1-spark", due_at=past, started_at=past, ended_at=past, until=None)
    assert beat(lm) == "not sent: the queue us-east-1-spark has no worker" and not there.asked


def test_another_deployment_s_queue_is_its_own_heartbeat_s(lm: Deployment, there: Receiver, head: str) -> None:
    past = clock.now() - timedelta(minutes=10)
    Duty.objects.filter(kind="validate").update(
        queue="mars-1-spark", due_at=past, started_at=past, ended_at=past, until=None
    )
    assert beat(lm) == "sent: 200"


def test_not_while_nobody_looks_for_what_is_wrong(lm: Deployment, there: Receiver) -> None:
    Duty.objects.filter(kind=rounds.DUTY).update(succeeded_at=clock.now() - timedelta(minutes=3))
    assert "alerts have not been evaluated" in beat(lm) and not there.asked


def test_that_it_was_not_taken_is_noted(lm: Deployment, there: Receiver) -> None:
    there.answers = [500]
    assert beat(lm) == "not accepted: 500"
    there.close()
    assert beat(lm).startswith("not accepted: 127.0.0.1 did not answer")
    assert "t0ken" not in Duty.objects.get(kind=heartbeat.DUTY).outcome


def test_without_a_url_there_is_no_duty(lm: Deployment, tell: Any) -> None:
    beat(lm)
    duty = Duty.objects.get(kind=heartbeat.DUTY).pk
    tell(heartbeat_url=Secret(""))
    heartbeat.look_round()
    assert lm.run(duty) == "no heartbeat is configured for this deployment"
    assert not Duty.objects.filter(kind=heartbeat.DUTY).exists()


def test_no_other_deployment_sends_it(lm: Deployment) -> None:
    other = Announced.objects.create(identity="x", region="mars-1", organization="o", key="k", seen_at=clock.now())
    assert heartbeat.needed(["us-east-1"]) == [deployments.own().pk] != [other.pk]  # type: ignore[union-attr]
