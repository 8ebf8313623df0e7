"""Exports on the pages that they share with mirrors, and in what these pages tell programs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.test import Client

from audit.models import AuditEvent
from console import exports_summary
from db import clock
from exports.models import Export
from exports.templatetags.source_exports import links_of
from jobs import duties
from jobs.models import Duty, JobLine
from rbac.models import User
from tests.api import Api
from tests.exports.test_pages import HEAD, NOW, OLD, a_run, an_export, body, failed
from tests.mirrors.factories import make_mirror, make_repository

pytestmark = pytest.mark.django_db
SERVICE = "/service/replication/v1"
WHOLE = {"path_at_success": "s3://company-bucket/good", "last_success_ref": HEAD, "succeeded_at": NOW}


@pytest.fixture
def olga(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def going_on() -> Export:
    export = an_export("busy", state="in-progress")
    at = clock.now() - timedelta(seconds=100)
    a_run(
        export, phase="copy", started_at=at, begun={"copy": at.timestamp()}, to_copy=100, copied=50, copied_bytes=10**8
    )
    duties.ensure("export", -export.pk, "us-east-1")
    return export


def test_failed_exports_stand_on_the_overview_with_repair(olga: Client, api: Api) -> None:
    export = failed()
    an_export("good", state="exported-successfully", **WHOLE)
    page = body(olga, "/")
    assert "1 of 2 exports needs attention." in page and "12 tasks failed: access denied" in page
    assert "Repair: analytics · failing" in page and f'action="/exports/{export.pk}/repair/"' in page
    make_mirror("eu", make_repository("analytics", now=NOW), now=NOW)
    page = body(olga, "/")
    assert "1 of 2 exports needs attention." in page and "nothing needs you" not in page
    told = api.call("GET", f"{SERVICE}/overview")[1]["exports"]
    assert (told["total"], told["needs_attention_total"]) == (2, 1)
    assert [(one["branch"], one["status"]) for one in told["needs_attention"]] == [("failing", "failed")]
    back = olga.post(f"/exports/{export.pk}/repair/", {"back": "/"})
    assert (back.status_code, back["Location"]) == (302, "/")
    assert "2 exports; nothing needs you." in body(olga, "/")


def test_jobs_have_the_runs_and_duties_of_exports(olga: Client, api: Api) -> None:
    export = going_on()
    duty = Duty.objects.get()
    page = body(olga, "/jobs/")
    for told in ("Running exports", "50 of 100", "about 1 min"):
        assert told in page
    assert "Run now: Export, analytics · busy" in body(olga, "/jobs/?kind=export")
    assert f'action="/exports/{export.pk}/pause/"' in page and f"/jobs/duty-{duty.pk}/log/" in page
    assert "analytics · busy" not in body(olga, "/jobs/?kind=sense").partition("<h2>Tasks")[2].partition("<h2>")[0]
    assert "Run now: Export" not in body(olga, "/jobs/?find=other")
    JobLine.objects.create(duty=duty, at=NOW, level="WARNING", worker="w", text="the store is away")
    log = body(olga, f"/jobs/duty-{duty.pk}/log/")
    assert "the store is away" in log and f'href="/exports/{export.pk}/"' in log
    listed = api.call("GET", f"{SERVICE}/jobs?kind=export")[1]["results"]
    assert [(one["branch"], one["mirror"], one["source_repository"]) for one in listed] == [("busy", None, "analytics")]
    assert api.call("GET", f"{SERVICE}/jobs/duty-{duty.pk}/log")[1]["results"][0]["message"] == "the store is away"
    assert api.call("POST", f"{SERVICE}/jobs/duty-{duty.pk}/stop")[0] == 409
    Duty.objects.update(due_at=Now() + timedelta(hours=1), failures=2)
    assert "Run now: Export" in body(olga, "/jobs/")
    assert api.call("POST", f"{SERVICE}/jobs/duty-{duty.pk}/retry")[0] == 202
    assert AuditEvent.objects.latest("pk").after == {"retry": "export", "source": "analytics", "region": "us-east-1"}
    olga.post(f"/exports/{export.pk}/pause/", {"back": "/jobs/"})
    assert "Paused" in body(olga, "/jobs/")


def test_an_export_that_failed_is_failed_among_the_tasks_and_is_repaired_there(olga: Client, api: Api) -> None:
    export = going_on()
    Export.objects.update(state="export-failed")
    duty = Duty.objects.get()
    Duty.objects.update(due_at=Now() + timedelta(hours=1), outcome="failed: waiting for Repair")
    page = body(olga, "/jobs/")
    assert f'id="d-{duty.pk}"' in page and "Repair: analytics · busy" in page and "1 failed" in page
    assert f'action="/exports/{export.pk}/repair/"' in page and "Run now: Export" not in page
    states = [row["state"] for row in api.call("GET", f"{SERVICE}/jobs?state=failed")[1]["results"]]
    assert states == ["failed"]
    assert api.call("GET", f"{SERVICE}/jobs?state=resting")[1]["results"] == []
    Export.objects.update(paused=True)
    assert api.call("GET", f"{SERVICE}/jobs?state=failed")[1]["results"] == []
    Export.objects.update(paused=False, gone="branch", state="exported-successfully")
    page = body(olga, "/jobs/")
    assert f'id="d-{duty.pk}"' in page and "Repair: analytics" not in page
    assert "1 of 1 export needs attention." in body(olga, "/")


def test_a_duty_of_an_export_is_nobodys_who_may_not_read_the_branch(teammate: User, outsider: User) -> None:
    going_on()
    duty = Duty.objects.get()
    otto, tom = Api(outsider), Api(teammate)
    assert otto.call("GET", f"{SERVICE}/jobs/duty-{duty.pk}")[0] == 403
    assert tom.call("GET", f"{SERVICE}/jobs/duty-{duty.pk}")[0] == 200
    assert tom.call("POST", f"{SERVICE}/jobs/duty-{duty.pk}/retry")[0] == 403


@pytest.mark.parametrize("text", ["analyt", "good", "company-bucket/good"])
def test_exports_are_found_by_repository_branch_and_path(olga: Client, api: Api, text: str) -> None:
    export = an_export("good")
    assert f'href="/exports/{export.pk}/">analytics · good' in body(olga, f"/search/?q={text}")
    found = api.call("GET", f"{SERVICE}/search?q={text}")[1]["exports"]["results"]
    assert [(one["branch"], one["export_path"]) for one in found] == [("good", "s3://company-bucket/good")]


def test_metrics_have_figures_of_exports(api: Api) -> None:
    export = an_export(
        "good",
        state="exported-successfully",
        behind_of=f"{HEAD}:{OLD}",
        behind_commits=2,
        behind_since=clock.now() - timedelta(minutes=5),
        **WHOLE | {"last_success_ref": OLD},
    )
    a_run(export, copied_bytes=7)
    text = api.client.get("/metrics", headers=api.headers).content.decode()
    labels = '{region="us-east-1",repository="analytics",branch="good"'
    for line in (
        f'export_state{labels},state="syncing"}} 1.0',
        f'export_state{labels},state="failed"}} 0.0',
        f"export_paused{labels}}} 0.0",
        f"export_behind_commits{labels}}} 2.0",
        f"export_behind_seconds{labels}}} 3",
        f"export_failed_files{labels}}} 0.0",
        f"export_copied_bytes{labels}}} 7.0",
        f"export_last_success_age_seconds{labels}}} ",
    ):
        assert f"lakemirror_{line}" in text, line


def test_a_mirrors_page_leads_to_the_exports_of_its_source(olga: Client) -> None:
    mirror = make_mirror("eu", make_repository("analytics", now=NOW), now=NOW)
    assert "is exported too" not in body(olga, f"/mirrors/{mirror.name}/")
    export = failed()
    page = body(olga, f"/mirrors/{mirror.name}/")
    assert f'<a href="/exports/{export.pk}/">failing to s3://company-bucket/failing</a> (failed)' in page


def test_exports_are_nobodys_who_may_not_read_their_branches(outsider: User) -> None:
    failed()
    now = clock.now()
    assert exports_summary.summary(outsider, now, 8).total == 0
    assert exports_summary.subjects(outsider) == exports_summary.going_on(outsider, now, 8) == []
    assert not exports_summary.find_exports(outsider, "analytics").exists()
    assert list(links_of(outsider, "us-east-1", "analytics", now)) == []
