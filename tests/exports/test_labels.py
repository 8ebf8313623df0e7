"""Labels of exports."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from exports.models import Export, ExportRun
from rbac.models import User
from tests.api import Api
from tests.exports.test_pages import an_export
from tests.mirrors.harness import Deployment
from tests.mirrors.views.test_pages import text

pytestmark = pytest.mark.django_db
CALL = "/api/v1/repositories/analytics/branches/main/export-labels"
SALES = {"team": "sales"}


@pytest.fixture
def olga(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def test_they_are_set_shown_and_recorded_and_nothing_is_exported(api: Api, lm: Deployment) -> None:
    an_export()
    before = Export.objects.get()
    for _ in range(2):
        status, shown = api.call("POST", CALL, {"labels": SALES})
        assert (status, shown["labels"]) == (200, SALES)
    event = AuditEvent.objects.get(action="fs:ExportConfig")
    assert (event.verb, event.before, event.after) == ("change", {"labels": {}}, {"labels": SALES})
    after = Export.objects.get()
    assert (after.wanted, after.state) == (before.wanted, before.state) and not ExportRun.objects.exists()
    for query, number in (("", 1), ("?label=team", 1), ("?label=team=sales", 1), ("?label=team=ops", 0)):
        assert len(api.call("GET", f"/api/v1/exports{query}")[1]["results"]) == number


@pytest.mark.parametrize("body", [{}, {"labels": None}, {"labels": {"A": "x"}}, {"labels": {}, "more": 1}, []])
def test_what_can_not_be_is_refused(api: Api, lm: Deployment, body: Any) -> None:
    an_export(labels=SALES)
    assert api.call("POST", CALL, body)[0] == 400 and Export.objects.get().labels == SALES


def test_the_pages_show_and_change_them(olga: Client, lm: Deployment) -> None:
    page = f"/exports/{an_export().pk}/"
    olga.post(f"{page}labels/", {"labels": "team=sales  tier=gold"})
    assert Export.objects.get().labels == SALES | {"tier": "gold"}
    assert "tier=gold" in text(olga.get(page)) and "tier=gold" in text(olga.get("/exports/"))
    assert "Label: team=sales" in text(olga.get("/exports/?label=team=sales"))
    assert "analytics · main" not in text(olga.get("/exports/?label=team=ops"))
    assert olga.post(f"{page}labels/", {"labels": "Team=sales"}).status_code == 400


def test_a_new_configuration_keeps_them(api: Api, lm: Deployment) -> None:
    lm.lake.commit(files={"a": b"1"})
    configured = "/api/v1/repositories/lake/branches/main/continuous-export"
    assert api.call("PUT", configured, {"exportPath": "s3://company-bucket/x"})[0] in (200, 201)
    Export.objects.update(labels=SALES)
    api.call("PUT", configured, {"exportPath": "s3://company-bucket/x", "isContinuous": True})
    assert Export.objects.get().labels == SALES
