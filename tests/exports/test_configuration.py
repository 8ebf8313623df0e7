"""Configuring an export, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from audit.models import AuditEvent
from core.errors import NotFound
from exports.api.exports import EVERY_COMMIT, ONCE
from exports.models import Export, ExportRun
from exports.services.exports import (
    export_delete,
    export_label,
    export_limits,
    export_pause,
    export_repair,
    export_repair_drift,
    export_run,
    export_verify,
)
from jobs.models import Duty
from rbac.models import User
from tests.api import Api
from tests.exports.soak import Soak
from tests.mirrors.harness import Deployment

BRANCH = "/api/v1/repositories/lake/branches/main"
CONFIG = f"{BRANCH}/continuous-export"
BODY = {"exportPath": "s3://company-bucket/path/to/export"}


@pytest.fixture
def head(lm: Deployment) -> str:
    return lm.lake.commit(files={"a": b"1"})


@pytest.mark.django_db
def test_put_replaces_every_field(lm: Deployment, api: Api, head: str) -> None:
    whole = {
        "exportPath": "s3://company-bucket/path/to/export/",
        "exportStatusPath": "s3://company-bucket/path/to/status",
        "lastKeysInPrefixRegexp": [".*/2021-\\d\\d-\\d\\d/"],
        "isContinuous": True,
        "manifest": "always",
        "includeActions": True,
        "objectsPerSecond": 100,
        "bytesPerSecond": None,
    }
    assert api.call("PUT", CONFIG, whole) == (201, {"message": EVERY_COMMIT})
    assert api.call("GET", CONFIG) == (200, {**whole, "exportPath": "s3://company-bucket/path/to/export"})
    assert api.call("PUT", CONFIG, BODY) == (201, {"message": EVERY_COMMIT}), "nobody ends it by leaving a field out"
    stays = {"isContinuous": True, "manifest": "always", "includeActions": True}
    left = {"exportStatusPath": "", "lastKeysInPrefixRegexp": [], **stays}
    assert api.call("GET", CONFIG) == (200, {**BODY, **left, "objectsPerSecond": None, "bytesPerSecond": None})
    assert Export.objects.get().wanted
    assert Duty.objects.filter(kind="export", queue="us-east-1-spark").count() == 1
    assert AuditEvent.objects.filter(action="fs:ExportConfig").count() == 2


@pytest.mark.django_db
def test_the_seeds_own_body_exports_once_and_says_so(lm: Deployment, api: Api, head: str) -> None:
    body = {
        "exportPath": "s3://company-bucket/path/to/export",
        "exportStatusPath": "s3://company-bucket/path/to/status",
        "lastKeysInPrefixRegexp": [".*/2021-\\d\\d-\\d\\d/"],
    }
    assert api.call("PUT", CONFIG, body) == (201, {"message": ONCE})
    assert api.call("GET", CONFIG)[1]["isContinuous"] is False
    assert api.call("PUT", CONFIG, {**body, "isContinuous": True})[1] == {"message": EVERY_COMMIT}
    assert api.call("PUT", CONFIG, {**body, "isContinuous": False})[1] == {"message": ONCE}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "exportPath"),
        ({"exportPath": ""}, "exportPath"),
        ({"exportPath": 7}, "exportPath"),
        ({"exportPath": "http://bucket/x"}, "exportPath"),
        ({"exportPath": "s3://"}, "exportPath"),
        ({"exportPath": "s3://Bad_Bucket/x"}, "exportPath"),
        ({"exportPath": "s3://bucket/a/../b"}, "exportPath"),
        ({"exportPath": "s3://bucket/" + "x" * 1500}, "exportPath"),
        ({"exportPath": "s3://src/lake/inside"}, "exportPath"),
        ({"exportPath": "s3://src"}, "exportPath"),
        ({**BODY, "exportStatusPath": "s3://company-bucket/path/to/export/status"}, "exportStatusPath"),
        ({**BODY, "exportStatusPath": "elsewhere"}, "exportStatusPath"),
        ({**BODY, "lastKeysInPrefixRegexp": ["fine", "(open"]}, "lastKeysInPrefixRegexp: pattern 2"),
        ({**BODY, "lastKeysInPrefixRegexp": "text"}, "lastKeysInPrefixRegexp"),
        ({**BODY, "lastKeysInPrefixRegexp": ["a"] * 51}, "lastKeysInPrefixRegexp"),
        ({**BODY, "isContinuous": "yes"}, "isContinuous"),
        ({**BODY, "objectsPerSecond": 0}, "objectsPerSecond"),
        ({**BODY, "bytesPerSecond": "fast"}, "bytesPerSecond"),
        ([], ""),
    ],
)
def test_what_is_wrong_is_named(lm: Deployment, api: Api, head: str, body: Any, field: str) -> None:
    status, told = api.call("PUT", CONFIG, body)
    assert status == 400
    assert field in told["message"]
    assert not Export.objects.exists()


@pytest.mark.django_db
def test_places_of_others_are_refused(lm: Deployment, api: Api, head: str) -> None:
    lm.add_mirror()
    status, told = api.call("PUT", CONFIG, {"exportPath": "s3://dst/lake"})
    assert (status, "mirror 'lake-eu'" in told["message"]) == (400, True)
    lm.us.repositories["lake"].branches["dev"] = head
    assert api.call("PUT", CONFIG, {**BODY, "exportStatusPath": "s3://company-bucket/states"})[0] == 201
    dev = CONFIG.replace("main", "dev")
    for place in ("s3://company-bucket/path", "s3://company-bucket/path/to/export/below", "s3://company-bucket/states"):
        assert api.call("PUT", dev, {"exportPath": place})[0] == 400
    other = {"exportPath": "s3://company-bucket/path/to/exported", "exportStatusPath": "s3://company-bucket/states"}
    assert api.call("PUT", dev, other)[0] == 201


@pytest.mark.django_db
def test_what_is_not_there_is_said(lm: Deployment, api: Api, head: str) -> None:
    for method, path, told in (
        ("GET", CONFIG, "no export is configured"),
        ("PUT", CONFIG.replace("main", "none"), "there is no branch 'none'"),
        ("PUT", CONFIG.replace("lake", "none"), "there is no repository 'none'"),
        ("GET", CONFIG.replace("lake", "none"), "there is no repository 'none'"),
        ("POST", f"{BRANCH}/export-hook", "no export is configured"),
        ("POST", f"{BRANCH}/repair-export", "no export is configured"),
        ("GET", f"{BRANCH}/export-status", "no export is configured"),
        ("DELETE", CONFIG, "no export is configured"),
    ):
        status, answer = api.call(method, path, BODY if method == "PUT" else None)
        assert (status, told in answer["message"]) == (404, True), (method, path, answer)


@pytest.mark.django_db
def test_a_run_starts_once(lm: Deployment, api: Api, head: str) -> None:
    api.call("PUT", CONFIG, BODY)
    status, number = api.call("POST", f"{BRANCH}/export-hook")
    assert (status, number) == (201, str(ExportRun.objects.get().pk))
    status, told = api.call("POST", f"{BRANCH}/export-hook")
    assert (status, "in progress" in told["message"]) == (409, True)
    status, told = api.call("POST", f"{BRANCH}/repair-export")
    assert (status, "nothing to repair" in told["message"]) == (409, True)
    status, told = api.call("GET", f"{BRANCH}/export-status")
    assert (status, told["status"], told["current_ref"], told["up_to_date"]) == (200, "in-progress", head, False)


@pytest.mark.django_db
def test_who_may_do_what(lm: Deployment, api: Api, head: str, teammate: User, outsider: User) -> None:
    api.call("PUT", CONFIG, BODY)
    reading, stranger = Api(teammate), Api(outsider)
    assert reading.call("GET", CONFIG)[0] == 200
    assert stranger.call("GET", CONFIG)[0] == 403
    assert len(reading.call("GET", "/api/v1/exports")[1]["results"]) == 1
    assert stranger.call("GET", "/api/v1/exports")[1]["results"] == []
    for method, path in (
        ("PUT", CONFIG),
        ("DELETE", CONFIG),
        ("POST", f"{BRANCH}/export-hook"),
        ("POST", f"{BRANCH}/repair-export"),
        ("POST", f"{BRANCH}/export-pause"),
    ):
        for who in (reading, stranger):
            status, told = who.call(method, path, BODY if method == "PUT" else None)
            assert (status, "branch/main" in told["message"]) == (403, True), (method, path, told)


@pytest.mark.django_db
def test_the_status_tells_what_is_tried_again_and_knows_nothing_of_a_branch_that_is_gone(
    lm: Deployment, api: Api, head: str
) -> None:
    api.call("PUT", CONFIG, BODY)
    success = {"last_success_ref": head, "path_at_success": BODY["exportPath"], "actions_at_success": False}
    Export.objects.update(head=head, **success)
    assert api.call("GET", f"{BRANCH}/export-status")[1]["up_to_date"] is True
    Export.objects.update(look_error="branch not found")
    Duty.objects.filter(kind="export").update(failures=2, outcome="507 InsufficientStorage")
    told = api.call("GET", f"{BRANCH}/export-status")[1]
    assert (told["up_to_date"], told["retrying"]) == (None, "507 InsufficientStorage")


VERBS: dict[str, Callable[[Any, Export], object]] = {
    "run": lambda actor, export: export_run(actor=actor, export=export),
    "repair": lambda actor, export: export_repair(actor=actor, export=export),
    "verify": lambda actor, export: export_verify(actor=actor, export=export),
    "repair-drift": lambda actor, export: export_repair_drift(actor=actor, export=export, remove=False),
    "pause": lambda actor, export: export_pause(actor=actor, export=export, paused=True),
    "limits": lambda actor, export: export_limits(actor=actor, export=export, changes={"objects_per_second": 1}),
    "label": lambda actor, export: export_label(actor=actor, export=export, wanted={"team": "sales"}),
    "delete": lambda actor, export: export_delete(actor=actor, export=export),
}


@pytest.mark.django_db
@pytest.mark.parametrize("gone", [True, False], ids=["gone", "going"])
@pytest.mark.parametrize("verb", VERBS)
def test_what_is_asked_of_an_export_that_was_deleted_in_that_moment_is_not_found(
    life: Soak, verb: str, gone: bool
) -> None:
    """It was there when it was looked up. Nothing is done, and nothing is in the audit."""
    life.lake.commit(files={"a": b"1"})
    export = life.set()
    Export.objects.update(state="export-failed" if verb == "repair" else "")
    export.refresh_from_db()
    if gone:
        Export.objects.all().delete()
    else:
        Export.objects.update(deleting=True)
    written = AuditEvent.objects.count()
    with pytest.raises(NotFound, match="the export has been deleted"):
        VERBS[verb](life.owner, export)
    assert AuditEvent.objects.count() == written and not ExportRun.objects.exists()
