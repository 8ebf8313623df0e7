"""What can be watched of exports: how far behind, how fast, what failed and what was skipped; of many at once."""

from __future__ import annotations

import gzip
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEvent
from db import clock
from exports.models import Export, ExportFailure, ExportRun, SkippedCommit
from exports.status.timeline import progress_of, steps_of
from rbac.models import User
from tests.api import Api
from tests.exports.test_pages import HEAD, NOW, OLD, a_run, an_export, body, failed

pytestmark = pytest.mark.django_db
BRANCH = "/api/v1/repositories/analytics/branches"
LIVE = {"HX-Request": "true", "HX-Target": "live"}
GOOD: dict[str, Any] = {"state": "exported-successfully", "last_success_ref": OLD, "succeeded_at": NOW}


@pytest.fixture
def olga(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def behind(number: int, **more: Any) -> Export:
    known = {
        "behind_commits": number,
        "behind_since": clock.now() - timedelta(minutes=14),
        "behind_of": f"{HEAD}:{OLD}",
    }
    return an_export(**GOOD | {"path_at_success": "s3://company-bucket/main"} | known | more)


def failures(run: ExportRun, number: int) -> None:
    rows = [
        ExportFailure(
            run=run,
            key=b"orders/day=2026-11-%02d/region=eu/part-%05d-c000.parquet" % (n % 28, n),
            reason="denied" if n % 3 else "gone",
            detail="403 AccessDenied (PutObject)",
            at=NOW,
        )
        for n in range(number)
    ]
    ExportFailure.objects.bulk_create(rows, batch_size=500)
    ExportRun.objects.filter(pk=run.pk).update(failed=run.failures.count())


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as asked:
        assert client.get(path).status_code == 200
    return len(asked)


# --- one export -------------------------------------------------------------------------------------------------------


def test_how_far_behind_is_told_on_the_page_and_to_programs(olga: Client, api: Api) -> None:
    export = behind(2)
    page = body(olga, f"/exports/{export.pk}/")
    assert "2 commits</span>" in page and "for 14 min" in page
    told = api.call("GET", f"{BRANCH}/main/export-status")[1]
    assert (told["behind_commits"], told["behind_at_least"], told["state"]) == (2, False, "syncing")
    assert 14 * 60 <= told["behind_seconds"] < 15 * 60
    Export.objects.update(behind_of="", behind_commits=None)
    assert "some commits" in body(olga, f"/exports/{export.pk}/")
    assert api.call("GET", f"{BRANCH}/main/export-status")[1]["behind_commits"] is None
    Export.objects.update(head=OLD)
    assert api.call("GET", f"{BRANCH}/main/export-status")[1]["behind_commits"] == 0


def test_a_run_tells_times_pace_and_expected_end(olga: Client, api: Api) -> None:
    now = clock.now()
    export = an_export(state="in-progress")
    began = {"clear": (now - timedelta(seconds=30)).timestamp(), "copy": (now - timedelta(seconds=20)).timestamp()}
    a_run(
        export,
        started_at=now - timedelta(seconds=38),
        phase="copy",
        begun=began,
        to_copy=100,
        copied=40,
        to_copy_bytes=10**9,
        copied_bytes=4 * 10**8,
    )
    told = api.call("GET", f"{BRANCH}/main/export-status")[1]
    assert [(step["name"], step["state"]) for step in told["steps"]][:3] == [
        ("plan", "done"),
        ("copy", "at work"),
        ("markers", "not done"),
    ]
    assert 1 < told["progress"]["files_per_second"] <= 2 and told["progress"]["eta"]
    page = body(olga, f"/exports/{export.pk}/")
    assert "files/s" in page and "about 3" in page and "left" in page and "8 s </span>" in page
    Export.objects.update(paused=True)
    assert "files/s" not in body(olga, f"/exports/{export.pk}/")


def test_what_failed_stands_at_the_copying(db: None) -> None:
    run = a_run(an_export(), phase="status", outcome="export-failed", ended_at=NOW, failed=1, to_copy=2)
    assert [step.word for step in steps_of(run)] == ["done", "failed", *["not done"] * 4]
    run.failed = 0
    assert [step.word for step in steps_of(run)][4] == "failed"
    assert progress_of(run, NOW).rate is None


def test_failures_are_counted_by_reason_and_given_as_csv(olga: Client, api: Api) -> None:
    export = failed()
    run = export.runs.get()
    failures(run, 60)
    page = body(olga, f"/exports/{export.pk}/?reason=gone")
    assert 'Access denied <span class="number">41</span>' in page and "part-00003" in page and "part-00001" not in page
    told = api.call("GET", f"{BRANCH}/failing/export-status")[1]
    assert {one["reason"]: one["files"] for one in told["failures_by_reason"]} == {
        "denied": 41,
        "gone": 20,
        "invalid": 1,
    }
    assert told["status_file"]["content"] == "status: export-failed, signalled_errors: 12\n"
    assert told["status_file"]["uri"] == f"s3://company-bucket-status/s/analytics-failing-{HEAD}"
    listed = api.call("GET", f"{BRANCH}/failing/export-failures?reason=gone&amount=15")[1]
    rest = api.call("GET", f"{BRANCH}/failing/export-failures?reason=gone&after={listed['pagination']['next_offset']}")[
        1
    ]
    assert (len(listed["results"]), len(rest["results"])) == (15, 5)
    csv = olga.get(f"{BRANCH}/failing/export-failures?format=csv&run={run.pk}", headers=api.headers)
    assert len(b"".join(csv.streaming_content).splitlines()) == 63
    assert api.call("GET", f"{BRANCH}/failing/export-failures?reason=none")[0] == 400


def test_skipped_commits_are_told_by_run(olga: Client, api: Api) -> None:
    export = behind(0)
    first = a_run(export, phase="done", outcome="exported-successfully", ended_at=NOW, skipped_commits=0)
    run = a_run(export, phase="done", outcome="exported-successfully", ended_at=NOW, skipped_commits=12)
    SkippedCommit.objects.bulk_create(
        SkippedCommit(run=run, sha=f"{n:02d}" * 32, message=f"load {n}", committed_at=NOW) for n in range(12)
    )
    page = body(olga, f"/exports/{export.pk}/")
    assert "load 9" in page and "load 10" not in page and "The newest 10." in page
    earlier = body(olga, f"/exports/{export.pk}/?run={first.pk}")
    assert "Earlier run" in earlier and "Skipped commits <span" not in earlier
    told = api.call("GET", f"{BRANCH}/main/export-skipped?run={run.pk}&amount=5")[1]
    assert [one["message"] for one in told["results"]] == [f"load {n}" for n in (11, 10, 9, 8, 7)]
    assert {one["run"] for one in told["results"]} == {str(run.pk)}
    assert olga.get(f"/exports/{export.pk}/?run=999999").status_code == 404


def test_runs_go_on_on_further_pages(olga: Client) -> None:
    export = an_export()
    keys = [a_run(export, phase="done", outcome="export-failed", ended_at=NOW).pk for _ in range(12)]
    page = body(olga, f"/exports/{export.pk}/")
    assert f"?before={keys[2]}" in page
    older = body(olga, f"/exports/{export.pk}/?before={keys[2]}")
    assert f"?run={keys[0]}" in older and "Newest runs" in older


def test_limits_are_changed_while_it_runs(olga: Client, api: Api) -> None:
    export = an_export(state="in-progress", objects_per_second=5, bytes_per_second=7)
    address = f"/exports/{export.pk}/limits/"
    assert olga.post(address, {"objects_per_second": "1,000", "bytes_per_second": ""}).status_code == 302
    export.refresh_from_db()
    assert (export.objects_per_second, export.bytes_per_second, export.wanted) == (1000, None, False)
    assert AuditEvent.objects.order_by("-pk")[0].before == {"objects_per_second": 5, "bytes_per_second": 7}
    for wrong in ("0", "-1", "fast", "9" * 18):
        told = olga.post(address, {"objects_per_second": wrong}, headers=LIVE)
        assert b"notice error" in told.content
    assert "at most 1,000 objects/s" in body(olga, f"/exports/{export.pk}/")
    call = f"{BRANCH}/main/export-limits"
    assert api.call("POST", call, {"bytesPerSecond": 9})[1]["objectsPerSecond"] == 1000
    assert api.call("POST", call, {"objectsPerSecond": None})[1]["bytesPerSecond"] == 9
    assert api.call("POST", call, {"objectsPerSecond": 0})[0] == 400


def test_ten_thousand_failures_and_many_runs_cost_what_few_do(olga: Client) -> None:
    export = failed()
    run = export.runs.get()
    queries(olga, f"/exports/{export.pk}/")
    few = queries(olga, f"/exports/{export.pk}/")
    failures(run, 10_000)
    for _ in range(30):
        a_run(export, phase="done", outcome="export-failed", ended_at=NOW)
    ExportFailure.objects.filter(run=run).update(run=export.runs.order_by("-pk")[0])
    assert queries(olga, f"/exports/{export.pk}/") <= few
    poll = olga.get(f"/exports/{export.pk}/", headers=LIVE).content
    assert len(gzip.compress(poll)) <= 10_240 and b"<html" not in poll


# --- all exports ------------------------------------------------------------------------------------------------------


def test_the_list_is_filtered_and_searched_by_its_address(olga: Client, api: Api) -> None:
    failed()
    behind(2)
    an_export("quiet", paused=True)
    page = body(olga, "/exports/?state=failed&state=paused&find=ANALYT")
    assert "analytics · failing" in page and "analytics · quiet" in page and "analytics · main" not in page
    assert "Remove the filter State: Paused" in page and "?state=failed&amp;state=paused" in page
    assert "No exports match these filters" in body(olga, "/exports/?find=nothing")
    assert "2 commits" in body(olga, "/exports/?find=bucket/main")
    listed = api.call("GET", "/api/v1/exports?state=failed&find=fail")[1]["results"]
    assert [(one["status"]["branch"], one["status"]["action"]) for one in listed] == [("failing", "repair")]
    assert api.call("GET", "/api/v1/exports?state=fine")[0] == 400


def test_several_are_paused_and_repaired_at_once_and_who_refuses_is_named(olga: Client, teammate: User) -> None:
    one, other = failed(), an_export("other")
    both = {"export": [one.pk, other.pk, "x", 10**30]}
    assert olga.post("/exports/change/", both | {"verb": "pause"}).status_code == 302
    assert set(Export.objects.values_list("paused", flat=True)) == {True}
    told = olga.post("/exports/change/", both | {"verb": "repair"}, headers=LIVE).content.decode()
    assert "Repair queued: analytics · failing." in told and "analytics · other: nothing to repair" in told
    assert (
        "Select at least one export first"
        in olga.post("/exports/change/", {"verb": "run"}, headers=LIVE).content.decode()
    )
    assert olga.post("/exports/change/", both | {"verb": "delete"}).status_code == 400
    tom = Client()
    tom.force_login(teammate)
    assert b"notice error" in tom.post("/exports/change/", both | {"verb": "resume"}, headers=LIVE).content
    assert set(Export.objects.values_list("paused", flat=True)) == {True}


def test_two_hundred_exports_cost_what_few_do(olga: Client, api: Api) -> None:
    def asked(path: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert olga.get(path, headers=api.headers).status_code == 200
        return len(captured)

    paths = ("/exports/", "/api/v1/exports?amount=1000")
    failed()
    [asked(path) for path in paths]
    few = [asked(path) for path in paths]
    made = [an_export(f"b{n:03d}", **GOOD | {"path_at_success": f"s3://company-bucket/b{n:03d}"}) for n in range(200)]
    ExportRun.objects.bulk_create(
        ExportRun(export=one, ref=HEAD, path=one.path, started_at=NOW, ended_at=NOW, phase="done") for one in made
    )
    assert [asked(path) for path in paths] <= few
    poll = olga.get("/exports/", headers=LIVE).content
    assert len(gzip.compress(poll)) <= 10_240 and poll.count(b"<tbody") == 30
    assert b"analytics \xc2\xb7 b199" in olga.get("/exports/?page=7").content
