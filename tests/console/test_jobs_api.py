"""The work in hand and the overview as JSON, and the job that each call of long work names."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEvent
from db import clock
from jobs.models import Duty
from mirrors.models import Mirror, Run, Validation
from mirrors.transitions import duties
from rbac.models import User
from tests.api import MIRRORS, Api
from tests.mirrors.factories import fail, make_company, make_mirror, make_repository, run_check
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db(transaction=True)
BASE = "/service/replication/v1"


def jobs(api: Api, query: str = "") -> Any:
    status, answer = api.call("GET", f"{BASE}/jobs?{query}")
    assert status == 200, answer
    return answer


def kinds(api: Api, query: str = "") -> list[str]:
    return [row["kind"] for row in jobs(api, query)["results"]]


def post(api: Api, path: str, body: Any = None) -> Any:
    """The answer itself, for its headers."""
    return api.client.post(path, body or {}, content_type="application/json", headers=api.headers)


# Lists


def test_duties_come_with_the_queues_and_the_workers(api: Api, lm: Deployment) -> None:
    now = clock.now()
    Duty.objects.filter(kind="copy").update(failures=4, outcome="no answer", ended_at=now)
    Duty.objects.filter(kind="manage").update(
        holder="host:1:ab", until=now + timedelta(seconds=40), attempt=7, started_at=now
    )
    answer = jobs(api)
    assert kinds(api) == [duty.kind for duty in Duty.objects.order_by("pk")]
    rows = {row["kind"]: row for row in answer["results"]}
    assert (rows["copy"]["state"], rows["copy"]["outcome"], rows["copy"]["failures"]) == ("failing", "no answer", 4)
    assert (rows["manage"]["worker"], rows["manage"]["mirror"]) == ("host:1:ab", "lake-eu")
    assert rows["sense"]["mirror"] is None and rows["sense"]["source_repository"] == "lake"
    (worker,) = answer["workers"]
    assert (worker["name"], worker["queue"], worker["duties"]) == ("host:1:ab", "us-east-1", 1)
    assert {queue["name"] for queue in answer["queues"]} == {"us-east-1", "us-east-1-spark"}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("state=failing", ["copy"]),
        ("kind=validate", ["validate"]),
        ("kind=validate&state=failing", []),
        ("mirror=lake-eu&kind=sense", ["sense"]),
        ("mirror=other", []),
    ],
)
def test_duties_are_filtered(api: Api, lm: Deployment, query: str, found: list[str]) -> None:
    Duty.objects.filter(kind="copy").update(failures=4)
    assert kinds(api, query) == found


@pytest.mark.parametrize(
    "query",
    ["type=x", "state=x", "kind=x", "open=true", "type=run&open=x", "type=run&state=due", "amount=0", "after=x"],
)
def test_what_a_filter_does_not_know_is_told(api: Api, lm: Deployment, query: str) -> None:
    assert api.call("GET", f"{BASE}/jobs?{query}")[0] == 400


def test_pages_follow_each_other(api: Api, lm: Deployment) -> None:
    found, after = [], ""
    while True:
        page = jobs(api, f"amount=2&after={after}")
        found += [row["id"] for row in page["results"]]
        after = page["pagination"]["next_offset"]
        if not after:
            break
    assert found == [f"duty-{pk}" for pk in Duty.objects.order_by("pk").values_list("pk", flat=True)]


def test_runs_and_validations_are_jobs_too(api: Api, lm: Deployment, head: str) -> None:
    mirror = Mirror.objects.get()
    status, asked = api.call("POST", f"{MIRRORS}/lake-eu/validate", {"all": True})
    assert (status, asked["job"]) == (202, f"{BASE}/jobs/validation-{asked['id']}")
    (row,) = jobs(api, "type=validation")["results"]
    assert (row["kind"], row["state"], row["asked_by"], row["mirror"]) == ("all", "queued", "olga", "lake-eu")
    runs = jobs(api, "type=run")["results"]
    assert [row["id"] for row in runs] == [f"run-{run.pk}" for run in mirror.runs.order_by("-pk")]
    assert runs[0]["state"] == "done" and runs[0]["entries_per_second"] is not None
    assert jobs(api, "type=run&open=true")["results"] == []


def test_a_run_whose_worker_is_gone_is_lost(api: Api, lm: Deployment) -> None:
    run = Run.objects.create(mirror=Mirror.objects.get(), job="check", started_at=clock.now(), ranges=4, ranges_done=1)
    assert jobs(api, "type=run")["results"][0]["state"] == "lost"
    Duty.objects.filter(kind="validate").update(until=clock.now() + timedelta(seconds=50))
    status, told = api.call("GET", f"{BASE}/jobs/run-{run.pk}")
    assert (status, told["state"], told["ranges"], told["ranges_done"]) == (200, "running", 4, 1)


def test_the_number_of_queries_stays(api: Api, lm: Deployment) -> None:
    def asked(query: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            jobs(api, query)
        return len(captured)

    queries = ("", "type=run", "type=validation")
    few = [asked(query) for query in queries]
    now = clock.now()
    for number in range(5):
        mirror = make_mirror(f"more-{number}", make_repository(f"m{number}", now=now), now=now)
        duties.ensure_mirror_duties(mirror)
        Run.objects.create(mirror=mirror, job="check", started_at=now)
        Validation.objects.create(mirror=mirror, what="all", depth="etag", key=str(number), asked_at=now)
    assert [asked(query) for query in queries] <= [few[0], few[1] + 1, few[2]]


def test_who_may_see_nothing_learns_nothing(outsider: User, lm: Deployment) -> None:
    other, duty = Api(outsider), Duty.objects.all()[0]
    assert other.call("GET", f"{BASE}/jobs")[0] == 403
    assert other.call("GET", f"{BASE}/overview")[0] == 403
    assert other.call("GET", f"{BASE}/jobs/duty-{duty.pk}")[0] == 403
    assert other.call("POST", f"{BASE}/jobs/duty-{duty.pk}/retry")[0] == 403


@pytest.mark.parametrize(
    "job", ["duty-999999", "duty-", "run-x", "x-1", "duty--1", "validation-" + "9" * 30, "duty-１"]
)
def test_a_job_that_is_not_there_is_not_found(api: Api, lm: Deployment, job: str) -> None:
    assert api.call("GET", f"{BASE}/jobs/{job}")[0] == 404
    assert api.call("POST", f"{BASE}/jobs/{job}/retry")[0] == 404


# Retry


def test_a_duty_is_done_now(api: Api, lm: Deployment) -> None:
    duty = Duty.objects.get(kind="copy")
    Duty.objects.update(due_at=clock.now() + timedelta(hours=1))
    answer = post(api, f"{BASE}/jobs/duty-{duty.pk}/retry")
    assert (answer.status_code, answer["Location"]) == (202, f"{BASE}/jobs/duty-{duty.pk}")
    assert Duty.objects.filter(pk=duty.pk, due_at__lte=Now()).exists()
    assert AuditEvent.objects.get(actor="olga").after == {"retry": "copy", "mirror": "lake-eu"}


def test_a_validation_that_ended_is_asked_for_anew(api: Api, lm: Deployment, head: str) -> None:
    _, first = api.call("POST", f"{MIRRORS}/lake-eu/validate", {"branch": "main"})
    assert api.call("POST", f"{first['job']}/retry")[1]["job"] == f"{BASE}/jobs/duty-{_validate().pk}"
    lm.work()
    assert api.call("GET", first["job"])[1]["state"] == "done"
    status, again = api.call("POST", f"{first['job']}/retry")
    assert (status, again["job"]) == (202, f"{BASE}/jobs/validation-{first['id'] + 1}")
    assert Validation.objects.get(pk=first["id"] + 1).branch == "main"


def _validate() -> Duty:
    return Duty.objects.get(kind="validate")


def test_a_run_is_tried_again_by_its_mirrors_validation(api: Api, lm: Deployment) -> None:
    Duty.objects.filter(kind="validate").delete()
    run = run_check(Mirror.objects.get(), now=clock.now())
    status, told = api.call("POST", f"{BASE}/jobs/run-{run.pk}/retry")
    assert status == 409 and "is running" in told["message"]
    Run.objects.update(ended_at=clock.now(), outcome="failed")
    status, told = api.call("POST", f"{BASE}/jobs/run-{run.pk}/retry")
    assert (status, told["job"]) == (202, f"{BASE}/jobs/duty-{_validate().pk}")


def test_who_may_only_look_may_not_retry(teammate: User, lm: Deployment) -> None:
    for duty in Duty.objects.all():
        assert Api(teammate).call("POST", f"{BASE}/jobs/duty-{duty.pk}/retry")[0] == 403


# Each call of long work names its job


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("sync", {}, "sense"),
        ("blockers/retry", {}, "validate"),
        ("prioritise", {"branch": "main"}, "copy"),
        ("reset-branch", {"branch": "main"}, "promote"),
    ],
)
def test_long_work_is_202_with_a_job_that_can_be_followed(
    api: Api, lm: Deployment, head: str, path: str, body: Any, kind: str
) -> None:
    if path == "prioritise":
        lm.lake.commit(files={"c": b"3"})
        lm.run(Duty.objects.get(kind="sense").pk)
    answer = post(api, f"{MIRRORS}/lake-eu/{path}", body)
    assert (answer.status_code, answer["Location"]) == (202, answer.json()["job"])
    assert api.call("GET", answer["Location"])[1]["kind"] == kind


def test_validate_names_its_job_in_the_header_too(api: Api, lm: Deployment, head: str) -> None:
    answer = post(api, f"{MIRRORS}/lake-eu/validate", {"all": True})
    assert answer["Location"] == answer.json()["job"]
    assert api.call("GET", answer["Location"])[1]["type"] == "validation"


def test_where_nothing_is_left_to_do_there_is_no_job(api: Api, lm: Deployment, head: str) -> None:
    answer = post(api, f"{MIRRORS}/lake-eu/prioritise", {"commit": head})
    assert (answer.status_code, answer.json()["job"], answer.has_header("Location")) == (202, None, False)


# The overview


def test_the_overview_tells_what_the_page_tells(api: Api, olga: Client) -> None:
    company = make_company()
    fail("copy", company["lab-eu"].pk, "no answer", now=clock.now())
    status, told = api.call("GET", f"{BASE}/overview")
    page = olga.get("/").context
    assert status == 200
    assert told["tiles"]["mirrors"] == len(company) and told["tiles"]["worst_lag_seconds"] > 0
    assert [row["mirror"] for row in told["needs_attention"]] == [one.mirror.name for one in page["needing"]]
    assert told["needs_attention"][0]["reason"] == page["needing"][0].sentence
    assert told["reason"] == str(page["summary"])
    assert {(row["source_region"], row["region"]) for row in told["matrix"]} == {
        ("us-east-1", "eu-west-1"),
        ("eu-west-1", "us-east-1"),
    }
    assert [row["message"] for row in told["latest"]] == [str(one.phrase) for one in page["latest"]]


def test_an_overview_of_nothing_knows_nothing(api: Api) -> None:
    status, told = api.call("GET", f"{BASE}/overview")
    assert (status, told["reason"], told["tiles"]["worst_lag_seconds"]) == (200, None, None)
    assert told["needs_attention"] == told["matrix"] == []
