"""What workers said of a duty lately: kept in the database, bounded, without secrets."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import DatabaseError, connection
from django.test import Client

from core.errors import Unreachable
from db import clock
from deployment import config
from deployment.known_secrets import known_secrets
from jobs import duties
from jobs import log as job_log
from jobs.lease import DutyOutcome, Lease
from jobs.log import JobLogHandler
from jobs.models import Duty, JobLine
from mirrors.models import Mirror, Run
from rbac.models import User
from tests.api import Api
from tests.jobs.work import every_minute
from tests.mirrors.harness import Deployment
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db(transaction=True)
BASE = "/service/replication/v1"
log = logging.getLogger("lakemirror.tests")


@pytest.fixture
def duty(lm: Deployment) -> Duty:
    return Duty.objects.get(kind="copy")


def work(duty: Duty, what: Any) -> str:
    Duty.objects.filter(pk=duty.pk).update(due_at=clock.now() - timedelta(seconds=1))
    with every_minute("copy", what):
        return duties.run(duty.pk, holder="host:1:ab")


def says(*lines: str, outcome: str = "") -> Any:
    def handler(lease: Lease) -> DutyOutcome:
        for line in lines:
            log.warning(line)
        return DutyOutcome(outcome)

    return handler


def said(duty: Duty) -> list[str]:
    return list(JobLine.objects.filter(duty=duty).order_by("pk").values_list("text", flat=True))


# What is kept


def test_warnings_and_an_outcome_that_is_new_are_kept(duty: Duty) -> None:
    work(duty, says("one", outcome="3 records copied"))
    work(duty, says(outcome="3 records copied"))
    work(duty, says("two", outcome="nothing to copy"))
    assert said(duty) == ["one", "3 records copied", "two", "nothing to copy"]
    line = JobLine.objects.earliest("pk")
    assert (line.level, line.worker) == ("WARNING", "host:1:ab")
    assert abs((clock.now() - line.at).total_seconds()) < 10
    log.warning("between rounds")
    assert "between rounds" not in said(duty)


def test_a_failure_is_told_once_with_its_attempt(duty: Duty) -> None:
    def fails(lease: Lease) -> DutyOutcome:
        raise Unreachable("eu-west-1 did not answer")

    work(duty, fails)
    work(duty, fails)
    assert said(duty) == [f"copy {duty.subject} (attempt {n} in a row): eu-west-1 did not answer" for n in (1, 2)]


def test_of_what_nobody_expected_the_kind_is_told_and_no_trace(duty: Duty) -> None:
    def breaks(lease: Lease) -> DutyOutcome:
        raise KeyError("wJalrXUtnFEMI")

    work(duty, breaks)
    assert said(duty) == [f"copy {duty.subject} failed for a reason that is our own fault (KeyError)"]


def test_what_other_threads_say_is_heard(duty: Duty) -> None:
    def handler(lease: Lease) -> DutyOutcome:
        thread = threading.Thread(target=lambda: log.warning("from a thread"))
        thread.start()
        thread.join()
        return DutyOutcome("")

    work(duty, handler)
    assert said(duty) == ["from a thread"]


def test_lines_are_written_while_the_round_still_waits(duty: Duty) -> None:
    seen: list[list[str]] = []

    def handler(lease: Lease) -> DutyOutcome:
        log.warning("going on")
        lease._renew_through()
        seen.append(said(duty))
        return DutyOutcome("")

    work(duty, handler)
    assert seen == [["going on"]] and said(duty) == ["going on"]


# Bounds


def test_of_a_duty_the_last_lines_stay(duty: Duty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_log, "KEPT", 5)
    other = Duty.objects.get(kind="sense")
    JobLine.objects.create(duty=other, at=clock.now(), level="INFO", worker="w", text="mine")
    for number in range(4):
        work(duty, says(f"{number}a", f"{number}b"))
    assert said(duty) == ["1b", "2a", "2b", "3a", "3b"]
    assert said(other) == ["mine"]


def test_a_round_that_says_very_much_keeps_its_last_lines(duty: Duty) -> None:
    work(duty, says(*(f"line {n} {'x' * 5000}" for n in range(200))))
    kept = said(duty)
    assert len(kept) == job_log.WAITING and kept[-1].startswith("line 199 ")
    assert {len(line) for line in kept} == {job_log.LONGEST}


def test_a_round_that_says_nothing_asks_nothing(duty: Duty, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        JobLogHandler(duty, "w").write()


def test_a_database_that_does_not_take_lines_fails_no_round(duty: Duty) -> None:
    with mock.patch.object(JobLine.objects, "bulk_create", side_effect=DatabaseError("full")):
        assert work(duty, says("lost", outcome="done")) == "done"
    duty.refresh_from_db()
    assert duty.failures == 0 and said(duty) == []


def test_what_was_not_taken_waits_for_the_next_time(duty: Duty) -> None:
    kept = JobLogHandler(duty, "w")
    kept.outcome("3 records copied", failed=False)
    with mock.patch.object(JobLine.objects, "bulk_create", side_effect=DatabaseError("locked")):
        kept.write()
    kept.write()
    assert said(duty) == ["3 records copied"]


def test_lines_go_with_their_duty(duty: Duty) -> None:
    def handler(lease: Lease) -> DutyOutcome:
        log.warning("the last words")
        Duty.objects.all().delete()
        return DutyOutcome("gone")

    work(duty, says("before"))
    work(duty, handler)
    assert not JobLine.objects.exists()


def test_secrets_are_hidden(duty: Duty) -> None:
    key = config.current().auth.encrypt.secret_key
    secrets = known_secrets()
    assert key in secrets and len(secrets) > 1
    work(duty, says(f"signed with {key.reveal()}", "https://u:pw@lake/x", "a\0b"))
    assert said(duty) == ["signed with ***", "https://***@lake/x", "ab"]


# Who asks


def test_the_api_gives_a_page_of_lines(api: Api, duty: Duty) -> None:
    work(duty, says("one", "two", "three"))
    path = f"{BASE}/jobs/duty-{duty.pk}/log"
    status, first = api.call("GET", f"{path}?amount=2")
    assert (status, [row["message"] for row in first["results"]]) == (200, ["three", "two"])
    rest = api.call("GET", f"{path}?amount=2&after={first['pagination']['next_offset']}")[1]
    assert [(row["message"], row["level"]) for row in rest["results"]] == [("one", "WARNING")]


def test_of_a_check_the_lines_of_its_time_are_given(api: Api, lm: Deployment) -> None:
    validate, now = Duty.objects.get(kind="validate"), clock.now()
    ago = {name: now - timedelta(minutes=n) for name, n in (("before", 9), ("during", 5), ("after", 1))}
    for name, at in ago.items():
        JobLine.objects.create(duty=validate, at=at, level="INFO", worker="w", text=name)
    times = {"started_at": now - timedelta(minutes=6), "ended_at": now - timedelta(minutes=4)}
    run = Run.objects.create(mirror=Mirror.objects.get(), job="check", outcome="done", **times)
    path = f"{BASE}/jobs/run-{run.pk}/log"
    assert [row["message"] for row in api.call("GET", path)[1]["results"]] == ["during"]
    Run.objects.update(ended_at=None)
    assert [row["message"] for row in api.call("GET", path)[1]["results"]] == ["after", "during"]


def test_the_page_shows_them_the_last_first(olga: Client, duty: Duty) -> None:
    work(duty, says("<b>one</b>", outcome="nothing to copy"))
    page = olga.get(f"/jobs/duty-{duty.pk}/log/")
    said_ = text(page)
    assert "Copy commits · lake-eu" in said_ and "None" not in said_
    assert said_.index("nothing to copy host:1:ab") < said_.index("<b>one</b> host:1:ab")
    assert f'href="/jobs/duty-{duty.pk}/log/"' in olga.get("/jobs/?state=any").content.decode()
    assert "Nothing has been logged." in text(olga.get(f"/jobs/duty-{Duty.objects.get(kind='sense').pk}/log/"))


def test_who_may_see_nothing_reads_nothing(outsider: User, client: Client, duty: Duty, api: Api) -> None:
    assert Api(outsider).call("GET", f"{BASE}/jobs/duty-{duty.pk}/log")[0] == 403
    client.force_login(outsider)
    assert client.get(f"/jobs/duty-{duty.pk}/log/").status_code == 403
    assert api.call("GET", f"{BASE}/jobs/duty-999999/log")[0] == 404


def test_the_version_before_may_delete_duties(duty: Duty) -> None:
    """It doesn't know of the lines."""
    work(duty, says("one"))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM mirrors_duty WHERE id = %s", [duty.pk])
    assert JobLine.objects.count() == 1
