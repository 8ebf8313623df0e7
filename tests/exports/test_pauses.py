"""Pausing an export with a reason and an end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from db import clock
from exports.models import Export
from jobs import housekeeping
from rbac.models import User
from tests.api import Api
from tests.exports.test_pages import an_export
from tests.mirrors.harness import Deployment
from tests.mirrors.views.test_pages import text

pytestmark = pytest.mark.django_db
BRANCH = "/api/v1/repositories/analytics/branches/main"
HOUR = timedelta(hours=1)


@pytest.fixture
def olga(owner: User) -> Client:
    client = Client()
    client.force_login(owner)
    return client


def pause(api: Api, **terms: Any) -> dict[str, Any]:
    status, shown = api.call("POST", f"{BRANCH}/export-pause", terms)
    assert status == 200, shown
    return dict(shown)


def test_it_says_why_until_when_and_by_whom(api: Api, lm: Deployment) -> None:
    an_export()
    shown = pause(api, reason="bucket moves", for_seconds=7200)
    assert (shown["paused"], shown["pause_reason"], shown["paused_by"]) == (True, "bucket moves", "olga")
    assert (
        shown["reason"].startswith("Paused by olga (bucket moves), meant to end at ")
        and " UTC: no commits of main" in shown["reason"]
    )
    moved = pause(api, until=None)
    assert (moved["pause_reason"], moved["paused_until"]) == ("bucket moves", None)
    resumed = api.call("POST", f"{BRANCH}/export-resume")[1]
    assert (resumed["paused"], resumed["pause_reason"], resumed["paused_at"]) == (False, None, None)
    events = AuditEvent.objects.filter(action="fs:PauseExport").order_by("pk")
    assert [(event.verb, event.reason) for event in events] == [
        ("pause", "bucket moves"),
        ("change", ""),
        ("resume", ""),
    ]


def test_one_that_lasts_for_longer_needs_somebody(api: Api, olga: Client, lm: Deployment) -> None:
    export = an_export()
    pause(api, reason="bucket moves", for_seconds=7200)
    assert "1 export; 1 is not exported yet." in text(olga.get("/"))
    Export.objects.update(paused_until=clock.now() - HOUR)
    said = text(olga.get("/"))
    assert "1 of 1 export needs attention" in said and "Resume" in said
    page = text(olga.get(f"/exports/{export.pk}/"))
    assert "was to end 1 h ago" in page and "Change reason or end" in page
    olga.post(f"/exports/{export.pk}/pause/", {"reason": "still", "for": "3600"})
    assert Export.objects.get().pause_reason == "still" and Export.objects.get().paused_until > clock.now()


def test_what_can_not_be_is_refused(api: Api, lm: Deployment) -> None:
    an_export()
    for terms in ({"reason": "x" * 201}, {"for_seconds": 1}, {"until": "2020-01-01T00:00:00Z"}):
        assert api.call("POST", f"{BRANCH}/export-pause", terms)[0] == 400
    assert not Export.objects.get().paused


def test_a_version_that_knows_no_reasons_may_resume(api: Api, lm: Deployment) -> None:
    an_export()
    pause(api, reason="bucket moves")
    Export.objects.update(paused=False)
    housekeeping.look_round()
    Export.objects.update(paused=True)
    assert api.call("GET", f"{BRANCH}/export-status")[1]["pause_reason"] is None
