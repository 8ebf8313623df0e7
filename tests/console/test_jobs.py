"""The page of jobs: duties, workers, checks going on, and a duty made due now."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django_q.models import OrmQ

from audit.models import AuditEvent
from jobs.models import Duty, Worker
from jobs.queue_status import queue_readings, troubles
from mirrors.models import Mirror, Run, Validation
from mirrors.queries.duties import OF_A_MIRROR, OF_A_SOURCE
from mirrors.transitions import duties
from rbac.models import User
from tests.api import Api
from tests.mirrors.factories import make_mirror, make_repository, run_check
from tests.mirrors.harness import Deployment
from tests.mirrors.views.test_pages import HTMX, text

pytestmark = pytest.mark.django_db(transaction=True)

NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test's own, for this file is read long before its turn comes."""
    monkeypatch.setattr(sys.modules[__name__], "NOW", datetime.now(UTC))


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


@pytest.fixture
def mirror(db: None) -> Mirror:
    """A mirror, and the rows of its five duties; none is due."""
    made = make_mirror("pond-eu", make_repository("pond", now=NOW), now=NOW)
    for kind in (*OF_A_MIRROR, *OF_A_SOURCE):
        subject = made.source_id if kind == "sense" else made.pk
        Duty.objects.create(kind=kind, subject=subject, queue="eu-west-1", due_at=NOW + timedelta(hours=1))
    return made


def change(kind: str, **more: Any) -> None:
    Duty.objects.filter(kind=kind).update(**more)


def kinds(client: Client, query: str = "?state=any") -> list[str]:
    return [job.duty.kind for job in client.get(f"/jobs/{query}").context["jobs"]]


# Duties


def test_a_duty_tells_what_it_is_about_and_how_it_goes(olga: Client, mirror: Mirror) -> None:
    change("copy", failures=4, outcome="eu-west-1 did not answer", ended_at=ago(20))
    change("manage", holder="host:1:ab", until=NOW + timedelta(seconds=50), attempt=1234, started_at=ago(5))
    change("promote", due_at=ago(300))
    said = text(olga.get("/jobs/?state=any"))
    assert "eu-west-1 did not answer" in said
    assert "by host:1:ab, attempt 1,234, since" in said
    assert "Poll source pond (us-east-1)" in said
    assert "5 min ago" in said
    assert kinds(olga)[:2] == ["copy", "promote"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?state=failing", ["copy"]),
        ("?state=held", ["manage"]),
        ("?state=overdue", ["promote"]),
        ("?state=due", ["validate"]),
        ("?state=resting", ["sense"]),
        ("?kind=validate", ["validate"]),
        ("?kind=validate&state=held", []),
        ("?find=POND&kind=sense", ["sense"]),
        ("?find=other", []),
    ],
)
def test_duties_are_filtered_by_kind_state_and_mirror(
    olga: Client, mirror: Mirror, query: str, found: list[str]
) -> None:
    change("copy", failures=4)
    change("manage", until=NOW + timedelta(minutes=10))
    change("promote", due_at=ago(300))
    change("validate", due_at=ago(2), until=ago(30))
    assert kinds(olga, query) == found


def test_duties_are_paged(olga: Client, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.jobs.views.PAGE", 2)
    assert len(kinds(olga)) == 2
    assert kinds(olga, "?state=any&page=3") == [kinds(olga, "?state=any&page=99")[0]]


def test_duties_of_mirrors_that_are_gone_are_not_shown(olga: Client, mirror: Mirror) -> None:
    Mirror.objects.update(state="deleting")
    assert kinds(olga) == []


def test_the_number_of_queries_stays_with_duties(olga: Client, mirror: Mirror) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as captured:
            olga.get("/jobs/")
        return len(captured)

    few = asked()
    for number in range(5):
        duties.ensure_mirror_duties(make_mirror(f"more-{number}", make_repository(f"m{number}", now=NOW), now=NOW))
    assert asked() <= few


# Checks going on


def test_a_check_tells_its_progress_and_rate(olga: Client, mirror: Mirror) -> None:
    Duty.objects.filter(kind="validate").delete()
    run_check(mirror, now=datetime.now(UTC))
    Run.objects.update(entries=1_000_000, started_at=datetime.now(UTC) - timedelta(seconds=100))
    page = olga.get("/jobs/")
    assert "12 of 31" in text(page)
    assert '<progress max="31" value="12">' in page.content.decode()
    (one,) = page.context["running"]
    assert 9_000 < one.rate <= 10_000
    Duty.objects.filter(kind="validate").update(until=ago(1))
    assert olga.get("/jobs/").context["running"] == []


# Workers


def test_a_worker_is_heard_of_when_it_takes_keeps_or_ends_a_duty(mirror: Mirror) -> None:
    assert queue_readings(NOW)[0].beat is None
    change("copy", started_at=ago(90))
    change("manage", ended_at=ago(70))
    assert queue_readings(NOW)[0].beat == ago(70)
    change("validate", holder="host:1:ab", until=NOW + timedelta(seconds=40))
    (queue,) = queue_readings(NOW)
    assert (queue.beat, queue.holders, queue.heard) == (ago(20), 1, True)


def test_silence_without_work_is_no_trouble(mirror: Mirror) -> None:
    change("copy", ended_at=ago(9000))
    assert troubles(queue_readings(NOW)) == []


def test_silence_with_work_is_told_and_whom_to_look_at(olga: Client, mirror: Mirror) -> None:
    change("copy", due_at=ago(61), woken_at=ago(3))
    change("manage", ended_at=ago(130))
    told = "No worker has served the queue eu-west-1 for 2 min. Check that its worker is running."
    assert troubles(queue_readings(NOW)) == [told]
    assert "No worker has served the queue eu-west-1" in text(olga.get("/jobs/"))
    change("copy", woken_at=ago(100))
    assert "Check that the controller, which sends wake-ups, and its worker" in troubles(queue_readings(NOW))[0]


def test_work_that_waits_for_long_behind_other_work_is_told(mirror: Mirror) -> None:
    change("copy", ended_at=ago(3))
    change("manage", due_at=ago(200))
    assert troubles(queue_readings(NOW)) == []
    change("manage", due_at=ago(700))
    told = "A task in the queue eu-west-1 has waited for 11 min: its workers are busy with other tasks."
    assert troubles(queue_readings(NOW)) == [told]


def test_messages_that_wait_are_counted(mirror: Mirror) -> None:
    OrmQ.objects.create(key="eu-west-1", payload="x", lock=ago(1))
    OrmQ.objects.create(key="eu-west-1", payload="x", lock=NOW + timedelta(hours=6))
    assert queue_readings(NOW)[0].messages == 1


def reported(name: str, **more: Any) -> Worker:
    host, pid, _ = name.split(":")
    given = {"queue": "eu-west-1", "slots": 4, "load": 0.5, "cores": 2, "started_at": ago(500), "heard_at": ago(2)}
    return Worker.objects.create(name=name, host=host, pid=pid, **(given | more))


def test_workers_are_listed_with_what_they_run_on(olga: Client, api: Api, mirror: Mirror) -> None:
    reported("host:1:ab")
    reported("host:2:cd", queue="eu-west-1-spark", spark="sc://spark:15002", spark_trouble="spark:15002 is away")
    change("manage", holder="host:1:ab", until=NOW + timedelta(seconds=50))
    said = text(olga.get("/jobs/"))
    assert "Workers 2" in said and "host:1 eu-west-1" in said and "0.50 on 2 cores" in said
    assert "Spark: spark:15002 is away. Nothing can be validated" in said
    workers = api.call("GET", "/service/replication/v1/jobs")[1]["workers"]
    assert [(one["name"], one["state"], one["duties"], one["slots"]) for one in workers] == [
        ("host:1:ab", "alive", 1, 4),
        ("host:2:cd", "alive", 0, 4),
    ]
    assert workers[1]["spark_trouble"] == "spark:15002 is away"


def test_a_worker_that_was_killed_leaves_a_trace(olga: Client, api: Api, mirror: Mirror) -> None:
    reported("host:1:ab", heard_at=ago(40))
    sentence = f"Worker host:1 of queue eu-west-1 stopped answering at {ago(40):%Y-%m-%d %H:%M:%S} UTC."
    page = olga.get("/jobs/")
    assert sentence in text(page) and page.context["workers"] == [] and page.context["alive"] == {"eu-west-1": 0}
    assert [one["state"] for one in api.call("GET", "/service/replication/v1/jobs")[1]["workers"]] == ["lost"]


# What needs somebody, and the rest by kind


def test_the_page_begins_with_what_needs_somebody_and_folds_the_rest(olga: Client, mirror: Mirror) -> None:
    change("copy", failures=4)
    change("promote", due_at=ago(300))
    page = olga.get("/jobs/")
    assert [job.duty.kind for job in page.context["jobs"]] == ["copy", "promote"]
    rows = {row.name: (row.label, row.total, row.failing, row.overdue) for row in page.context["by_kind"]}
    assert rows["copy"] == ("Copy commits", 1, 1, 0)
    assert rows["promote"] == ("Move branches", 1, 0, 1)
    assert rows["sense"] == ("Poll source", 1, 0, 0)
    assert "No task has failed" not in text(page)
    Duty.objects.update(failures=0, due_at=NOW + timedelta(hours=1))
    assert "No task has failed, is failing or is overdue." in text(olga.get("/jobs/"))
    assert "No tasks match these filters." in text(olga.get("/jobs/?state=held"))


# Run now


def test_retry_makes_a_duty_due_now_and_is_written_down(olga: Client, mirror: Mirror, lm: Deployment) -> None:
    duty = Duty.objects.get(kind="copy", subject=mirror.pk)
    answer = olga.post(f"/jobs/{duty.pk}/retry/?state=failing", follow=True)
    assert answer.redirect_chain == [("/jobs/?state=failing", 302)]
    assert "Queued: Copy commits." in text(answer)
    assert Duty.objects.filter(pk=duty.pk, due_at__lte=Now()).exists()
    event = AuditEvent.objects.get(actor="olga")
    assert (event.arn.rpartition("/")[2], event.after) == ("pond", {"retry": "copy", "mirror": "pond-eu"})


def test_retry_of_a_look_at_a_source_names_the_source(olga: Client, mirror: Mirror, lm: Deployment) -> None:
    duty = Duty.objects.get(kind="sense", subject=mirror.source_id)
    assert "Queued: Poll source." in text(olga.post(f"/jobs/{duty.pk}/retry/", headers=HTMX))
    assert AuditEvent.objects.get(actor="olga").after == {"retry": "sense", "source": "pond", "region": "us-east-1"}


def test_who_may_only_look_may_not_retry(teammate: User, client: Client, mirror: Mirror) -> None:
    client.force_login(teammate)
    duty = Duty.objects.get(kind="copy")
    assert "/retry/" not in client.get("/jobs/?state=any").content.decode()
    answer = client.post(f"/jobs/{duty.pk}/retry/")
    assert answer.status_code == 403
    assert "arn:lakefs:fs:::repository/pond" in text(answer)
    assert "tom may not" in text(client.post(f"/jobs/{duty.pk}/retry/", headers=HTMX))
    assert not Duty.objects.filter(pk=duty.pk, due_at__lte=Now()).exists()


def test_retry_needs_post_and_a_duty_that_one_may_see(olga: Client, outsider: User, mirror: Mirror) -> None:
    duty = Duty.objects.get(kind="copy")
    assert olga.get(f"/jobs/{duty.pk}/retry/").status_code == 405
    assert olga.post("/jobs/999999/retry/").status_code == 404
    other = Client()
    other.force_login(outsider)
    assert other.post(f"/jobs/{duty.pk}/retry/").status_code == 403


def test_a_poll_gets_the_part_that_changes(olga: Client, mirror: Mirror) -> None:
    part = olga.get("/jobs/", headers=HTMX).content.decode()
    assert part.count('id="live"') == 1 and "<html" not in part and "None" not in part


# Checks that somebody asked for


def asked_for(mirror: Mirror, **more: Any) -> Validation:
    given = {"what": "all", "depth": "etag", "key": str(more), "asked_at": ago(60), "asked_by": "tom"}
    return Validation.objects.create(mirror=mirror, **(given | more))


def test_checks_that_were_asked_for_are_told_with_their_progress(olga: Client, mirror: Mirror) -> None:
    asked_for(mirror, started_at=ago(50), ranges=40, ranges_done=10)
    asked_for(mirror, ended_at=ago(5), stopped_by="olga")
    page = olga.get("/jobs/")
    said = text(page)
    assert "all heads by etag, requested" in said and "by tom; log Running 10 of 40 ranges" in said
    assert "Stopped by olga" in said and "None" not in said
    assert [one.eta is not None for one in page.context["requested_checks"]] == [True, False]


def test_a_check_is_stopped_and_asked_for_again(olga: Client, mirror: Mirror, lm: Deployment) -> None:
    one = asked_for(mirror)
    answer = olga.post(f"/jobs/validation-{one.pk}/stop/", {"back": "/mirrors/pond-eu/runs/"}, follow=True)
    assert answer.redirect_chain == [("/mirrors/pond-eu/runs/", 302)]
    assert f"Stopped: validation {one.pk} of pond-eu." in text(answer)
    assert "has ended already" in text(olga.post(f"/jobs/validation-{one.pk}/stop/", headers=HTMX))
    # Nothing is at the mirror yet that could be checked.
    assert "there is nothing to validate" in text(olga.post(f"/jobs/validation-{one.pk}/again/", headers=HTMX))


def test_who_may_only_look_gets_no_stop(teammate: User, client: Client, mirror: Mirror) -> None:
    one = asked_for(mirror)
    client.force_login(teammate)
    for address in ("/jobs/", "/mirrors/pond-eu/runs/"):
        assert f"validation-{one.pk}/stop" not in client.get(address).content.decode()
    assert client.post(f"/jobs/validation-{one.pk}/stop/").status_code == 403
    assert client.post("/jobs/validation-999/stop/").status_code == 404
