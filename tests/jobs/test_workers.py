"""Workers that report themselves, and what is told of one that stopped."""

from __future__ import annotations

import logging
import socket
from datetime import timedelta

import pytest

from db import clock
from jobs import workers
from jobs.lease import HOLDER
from jobs.management.commands.qcluster import Reporter
from jobs.models import Worker

pytestmark = pytest.mark.django_db


def test_a_worker_reports_itself_under_the_name_that_its_leases_have() -> None:
    workers.report(queue="us-east-1")
    began = Worker.objects.get().started_at
    workers.report(queue="us-east-1")
    row = Worker.objects.get()
    assert (row.name, row.queue, row.started_at, row.spark_trouble) == (HOLDER, "us-east-1", began, "")
    assert f"{row.host}:{row.pid}" in HOLDER and row.slots > 0
    workers.leave()
    assert not Worker.objects.exists()


def test_one_that_stopped_is_logged_once_and_forgotten_after_a_day(caplog: pytest.LogCaptureFixture) -> None:
    workers.report(queue="us-east-1")
    workers.note_lost()
    assert caplog.messages == []
    Worker.objects.update(heard_at=clock.now() - timedelta(seconds=40))
    with caplog.at_level(logging.ERROR):
        workers.note_lost()
        workers.note_lost()
    (message,) = caplog.messages
    assert message.startswith("Worker ") and "of queue us-east-1 stopped answering at " in message
    workers.report(queue="us-east-1")
    assert Worker.objects.get().lost_at is None
    Worker.objects.update(heard_at=clock.now() - timedelta(days=2))
    workers.note_lost()
    assert not Worker.objects.exists()


def test_a_spark_server_that_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert workers.spark_trouble(f"sc://127.0.0.1:{port}/;token=secret") == ""
    told = workers.spark_trouble(f"sc://127.0.0.1:{port}/;token=secret")
    assert told == f"127.0.0.1:{port} can't be reached: Connection refused"
    assert workers.spark_trouble("local[2]") == ""


@pytest.mark.django_db(transaction=True)
def test_the_cluster_reports_every_few_seconds() -> None:
    reporter = Reporter()
    reporter.report_if_due()
    assert Worker.objects.count() == 1
    Worker.objects.all().delete()
    reporter.report_if_due()
    assert not Worker.objects.exists()
