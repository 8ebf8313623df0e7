"""Several exports of one branch, to places that are apart, side by side."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.errors import Conflict, Invalid
from exports.engine.runs import require_apart
from exports.models import Export
from exports.services.exports import export_delete, export_pause, export_repair
from jobs.models import Duty
from rbac.models import User
from tests.api import Api
from tests.exports.test_form import checks, may
from tests.exports.world import World
from tests.mirrors.harness import Deployment

pytestmark = pytest.mark.django_db
BRANCHES = "/api/v1/repositories/lake/branches"
ONE, OTHER = {"exportPath": "s3://company-bucket/latest"}, {"exportPath": "s3://partner-bucket/lake"}


@pytest.fixture
def head(lm: Deployment) -> str:
    return lm.lake.commit(files={"a": b"1"})


@pytest.fixture
def olga(owner: User) -> Client:
    """Olga's browser."""
    client = Client()
    client.force_login(owner)
    return client


# --- running ----------------------------------------------------------------------------------------------------------


def both(w: World) -> tuple[Export, Export]:
    """Two exports of main, with expressions and a status path of their own each."""
    w.lake.commit(files={"d1/a": b"1", "d2/b": b"2"})
    one = w.set("s3://out/latest", patterns=["d1/"])
    return one, w.set("s3://out/partner", name="partner", patterns=["d2/"], status_path="s3://out/told")


def test_each_follows_the_branch_to_its_place_with_its_expressions(w: World) -> None:
    both(w)
    w.work()
    second = w.lake.commit(files={"d1/a": b"3", "d2/b": None, "d2/c": b"4"})
    w.work()
    for place in ("latest/", "partner/"):
        assert w.problems(second, prefix=place) == []
    assert "d1/_lakefs_success" in w.there("latest/") and "d2/_lakefs_success" not in w.there("latest/")
    assert "d2/_lakefs_success" in w.there("partner/") and "d1/_lakefs_success" not in w.there("partner/")
    for status_path in ("states/", "told/"):
        assert w.there(status_path)[f"lake-main-{second}"] == b"status: exported-successfully, signalled_errors: 0\n"
    assert all(export.state == "exported-successfully" for export in Export.objects.all())


def test_one_that_fails_or_rests_does_not_hold_up_the_other(w: World) -> None:
    one, partner = both(w)
    w.work()
    w.put("partner/d2/_lakefs_success", b"somebody's own")
    second = w.lake.commit(files={"d2/b": b"5"})
    w.work()
    one.refresh_from_db(), partner.refresh_from_db()
    assert (one.state, one.last_success_ref) == ("exported-successfully", second)
    assert partner.state == "export-failed"
    export_pause(actor=w.owner, export=one, paused=True)
    w.client.delete_object(Bucket="out", Key="partner/d2/_lakefs_success")
    export_repair(actor=w.owner, export=partner)
    third = w.lake.commit(files={"d2/b": b"6"})
    w.work()
    one.refresh_from_db(), partner.refresh_from_db()
    assert (one.last_success_ref, partner.last_success_ref) == (second, third)


def test_the_end_of_one_leaves_the_other_and_its_files(w: World) -> None:
    one, _ = both(w)
    w.work()
    export_delete(actor=w.owner, export=one)
    second = w.lake.commit(files={"d1/a": b"7"})
    w.work()
    assert Export.objects.get().name == "partner"
    assert w.problems(second, prefix="partner/") == []
    assert w.there("latest/")["d1/a"] == b"1"


@pytest.mark.parametrize(
    ("path", "status_path", "field"),
    [
        ("s3://out/latest", "s3://out/told", "exportPath"),
        ("s3://out/latest/below", "s3://out/told", "exportPath"),
        ("s3://out", "", "exportPath"),
        ("s3://out/states/below", "", "exportPath"),
        ("s3://out/partner", "s3://out/latest/states", "exportStatusPath"),
        ("s3://out/partner", "s3://out/states", "exportStatusPath"),
    ],
)
def test_their_places_may_not_overlap(w: World, path: str, status_path: str, field: str) -> None:
    w.lake.commit(files={"a": b"1"})
    w.set()
    with pytest.raises(Invalid, match=r"lake/main \(us-east-1\)") as refused:
        w.set(path, name="partner", status_path=status_path)
    assert (refused.value.field, Export.objects.count()) == (field, 1)


def test_nothing_is_written_where_they_came_to_overlap(w: World) -> None:
    one, partner = both(w)
    Export.objects.filter(pk=partner.pk).update(path="s3://out/latest/in")
    with pytest.raises(Conflict, match="the path of another export"):
        require_apart(one)


# --- the API ----------------------------------------------------------------------------------------------------------


def test_an_address_without_a_name_is_of_the_export_without_one(lm: Deployment, api: Api, head: str) -> None:
    assert api.call("PUT", f"{BRANCHES}/main/continuous-export", ONE)[0] == 201
    assert api.call("PUT", f"{BRANCHES}/main:partner/continuous-export", OTHER)[0] == 201
    for which, body, name in (("main", ONE, ""), ("main:partner", OTHER, "partner")):
        assert api.call("GET", f"{BRANCHES}/{which}/continuous-export")[1]["exportPath"] == body["exportPath"]
        told = api.call("GET", f"{BRANCHES}/{which}/export-status")[1]
        assert (told["branch"], told["name"]) == ("main", name)
    assert api.call("PUT", f"{BRANCHES}/main/continuous-export", {"exportPath": "s3://company-bucket/new"})[0] == 201
    assert api.call("POST", f"{BRANCHES}/main:partner/export-pause")[1]["paused"] is True
    assert [(export.name, export.path, export.paused) for export in Export.objects.all()] == [
        ("", "s3://company-bucket/new", False),
        ("partner", OTHER["exportPath"], True),
    ]
    assert Duty.objects.filter(kind="export").count() == 2
    subjects = AuditEvent.objects.filter(action="fs:ExportConfig").values_list("subject", flat=True)
    assert {*subjects} == {"export/us-east-1/lake/main", "export/us-east-1/lake/main:partner"}
    named = api.call("GET", "/api/v1/exports?find=PARTNER")[1]["results"]
    assert [one["status"]["name"] for one in named] == ["partner"]
    assert api.call("DELETE", f"{BRANCHES}/main/continuous-export")[0] == 204
    assert Export.objects.get(deleting=False).name == "partner"


CALLS = [
    ("GET", "continuous-export"),
    ("DELETE", "continuous-export"),
    ("POST", "export-hook"),
    ("POST", "repair-export"),
    ("GET", "export-status"),
    ("GET", "export-runs"),
    ("GET", "export-skipped"),
    ("POST", "export-limits"),
    ("POST", "export-labels"),
    ("GET", "export-failures"),
    ("POST", "export-pause"),
    ("POST", "export-resume"),
    ("POST", "export-verify"),
    ("POST", "export-repair-drift"),
    ("GET", "export-verification"),
    ("GET", "export-drift"),
]
"""Every call of a branch's export but those that make or try one."""


@pytest.mark.parametrize(("method", "call"), CALLS)
def test_every_call_says_which_export_is_missing(lm: Deployment, api: Api, head: str, method: str, call: str) -> None:
    body = (
        {"labels": {}} if call == "export-labels" else {} if call in ("export-limits", "export-repair-drift") else None
    )
    api.call("PUT", f"{BRANCHES}/main:partner/continuous-export", OTHER)
    status, told = api.call(method, f"{BRANCHES}/main/{call}", body)
    assert status == 404 and "no export is configured" in told["message"]
    assert "list them, and use BRANCH:NAME" in told["message"]
    status, told = api.call(method, f"{BRANCHES}/main:other/{call}", body)
    assert status == 404 and "no export 'other' is configured for branch 'main'" in told["message"]
    status, told = api.call(method, f"{BRANCHES}/main:no name/{call}", body)
    assert (status, told["field"]) == (400, "branch")
    assert Export.objects.get().name == "partner"


@pytest.mark.parametrize(("method", "call"), [*CALLS, ("PUT", "continuous-export"), ("POST", "export-check")])
def test_rights_are_those_on_the_branch(lm: Deployment, outsider: User, head: str, method: str, call: str) -> None:
    told = Api(outsider).call(method, f"{BRANCHES}/main:partner/{call}", OTHER)
    assert told[0] == 403 and "arn:lakefs:fs:::repository/lake/branch/main." in told[1]["message"], told


def test_who_may_change_the_branch_s_exports_may_change_each(lm: Deployment, outsider: User, head: str) -> None:
    may(outsider, "fs:ExportConfig")
    assert Api(outsider).call("PUT", f"{BRANCHES}/main:partner/continuous-export", OTHER)[0] == 201
    assert Api(outsider).call("PUT", f"{BRANCHES}/dev:main/continuous-export", OTHER)[0] == 403


def test_the_check_knows_names(w: World, api: Api) -> None:
    w.lake.commit(files={"a": b"1"})
    w.set(status_path="")
    body = {"exportPath": "s3://out/partner"}
    status, told = api.call("POST", f"{BRANCHES}/main:partner/export-check", body)
    assert (status, told["ok"], checks(told)["name"]["message"]) == (200, True, "The export is called main:partner")
    told = api.call("POST", f"{BRANCHES}/main:partner/export-check", {"exportPath": "s3://out/latest/in"})[1]
    assert checks(told)["path-apart"]["state"] == "failed"
    own = {"exportPath": "s3://out/latest"}
    assert api.call("POST", f"{BRANCHES}/main/export-check", own)[1]["ok"] is True


# --- pages and figures ------------------------------------------------------------------------------------------------


def test_a_branch_is_exported_once_more_on_the_page(lm: Deployment, olga: Client, head: str) -> None:
    typed = {"region": "us-east-1", "repository": "lake", "branch": "main", "path": "s3://bucket/latest"}
    olga.post("/exports/new/", typed)
    more = typed | {"path": "s3://bucket/partner"}
    again = olga.post("/exports/new/", more)
    assert again.status_code == 409 and b"give this one a name of its own" in again.content
    assert b"is not a valid export name" in olga.post("/exports/new/", more | {"name": "a b"}).content
    made = olga.post("/exports/new/", more | {"name": "partner"})
    partner = Export.objects.get(name="partner")
    assert (made.status_code, made["Location"]) == (302, f"/exports/{partner.pk}/")
    page = olga.get(f"/exports/{partner.pk}/").content.decode()
    assert "lake · main:partner" in page and "/branches/main:partner/export-status" in page
    assert "lakefs://lake/main:partner" in page
    listed = olga.get("/exports/").content.decode()
    assert "lake · main:partner" in listed and "lake · main</a>" in listed
    assert "lake · main:partner" in olga.get("/search/?q=partner").content.decode()
    olga.post(f"/exports/{partner.pk}/edit/", {"path": "s3://bucket/moved", "name": "renamed"})
    partner.refresh_from_db()
    assert (partner.name, partner.path) == ("partner", "s3://bucket/moved"), "which export it is stays"


def test_the_form_tells_the_call_and_the_command_of_the_named_one(lm: Deployment, olga: Client, head: str) -> None:
    typed = {"region": "us-east-1", "repository": "lake", "branch": "main", "name": "partner", "check": "1"}
    page = olga.post("/exports/new/", typed | {"path": "s3://bucket/partner"}).content.decode()
    assert "/branches/main:partner/continuous-export" in page and "export set lakefs://lake/main:partner" in page


def test_figures_tell_them_apart(lm: Deployment, api: Api, head: str) -> None:
    for which, body in (("main", ONE), ("main:partner", OTHER)):
        api.call("PUT", f"{BRANCHES}/{which}/continuous-export", body)
    text = api.client.get("/metrics", headers=api.headers).content.decode()
    of = 'lakemirror_export_paused{region="us-east-1",repository="lake",branch="main"'
    assert f"{of}}} 0.0" in text and f'{of},name="partner"}} 0.0' in text
    Export.objects.filter(name="partner").update(state="export-failed")
    needs: list[dict[str, Any]] = api.call("GET", "/service/replication/v1/overview")[1]["exports"]["needs_attention"]
    assert [(need["branch"], need["name"]) for need in needs] == [("main", "partner")]
