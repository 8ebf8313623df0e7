"""A verification that could not be finished: told on the pages, by an alert, and until one comes to an answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from db import clock
from exports.engine import verifications
from exports.models import Export, ExportVerification
from exports.status.export import export_statuses
from exports.views.list_query import tell
from installations.models import Contact
from notifications.conditions import observe
from notifications.models import Alert
from tests.exports.test_pages import HEAD, an_export, body
from tests.mirrors.harness import Deployment
from tests.notifications.rounds import Rounds, events, open_kinds

pytestmark = pytest.mark.django_db
KIND = "export-unverified"
DONE = {"state": "exported-successfully", "last_success_ref": HEAD, "current_ref": HEAD}


@pytest.fixture
def export(lm: Deployment) -> Export:
    """One that is in order; its last verification, a minute ago, was refused."""
    export = an_export(path="s3://company-bucket/main", path_at_success="s3://company-bucket/main", **DONE)
    Export.objects.update(succeeded_at=clock.now() - timedelta(hours=1))
    compared(export, "failed", error="access denied")
    return export


def compared(export: Export, outcome: str, **more: Any) -> None:
    at = clock.now() - timedelta(seconds=70)
    about = {"ref": HEAD, "path": export.path, "started_at": at, "ended_at": at, "outcome": outcome}
    ExportVerification.objects.create(export=export, **about | more)


def look(looks: Rounds, *seconds: float) -> None:
    for at in seconds:
        looks.at(at, observe(clock.now()))


def test_it_is_told_until_one_comes_to_an_answer(export: Export, looks: Rounds) -> None:
    look(looks, 0)
    alert = Alert.objects.get()
    assert (alert.kind, alert.severity, alert.name) == (KIND, "warning", "analytics · main")
    assert alert.sentence == f"The verification of {HEAD[:8]} could not be finished: access denied."
    assert alert.link == f"/exports/{export.pk}/" and "click Verify" in alert.remedy
    compared(export, "", ended_at=None)
    look(looks, 10, 20)
    verifications.outdate(export, "a run began")
    look(looks, 30, 40)
    assert open_kinds() == [KIND]
    compared(export, "equal")
    look(looks, 50, 60)
    assert events() == [(KIND, "opened"), (KIND, "closed")]
    assert Alert.objects.get().closing.startswith("Exported: The destination has matched main")


def test_its_pages_say_so_and_offer_to_verify(export: Export, olga: Client) -> None:
    page = body(olga, f"/exports/{export.pk}/")
    assert "Not verified" in page and "could not be finished: access denied. Fix that, then click Verify." in page
    assert "1 export needs attention" in str(tell(export_statuses([export], clock.now())))
    overview = body(olga, "/")
    assert "1 of 1 export needs attention." in overview and f'action="/exports/{export.pk}/verify/"' in overview
    compared(export, "equal")
    assert "Not verified" not in body(olga, f"/exports/{export.pk}/") and "nothing needs you" in body(olga, "/")


def test_what_explains_it_is_told_instead(export: Export, looks: Rounds) -> None:
    Export.objects.update(state="export-failed", error="access denied")
    look(looks, 0, 60)
    assert open_kinds() == ["export-failed"]
    Export.objects.update(**DONE)
    since, now = clock.now() - timedelta(minutes=2), clock.now()
    away = {"asked_at": now, "failing_since": since, "kind": "unreachable", "problem": "no answer"}
    Contact.objects.create(region="us-east-1", service="store", **away)
    look(looks, 70, 80)
    assert open_kinds() == ["region-down"]
    Contact.objects.update(failing_since=None)
    look(looks, 90, 100)
    assert open_kinds() == [KIND]


def test_at_another_place_nothing_is_said_of_the_former_one(export: Export, looks: Rounds) -> None:
    verifications.outdate_all(export, export.path, "it is in another store")
    look(looks, 0, 60)
    assert not Alert.objects.exists()
    compared(export, "failed", path="s3://elsewhere/main", error="no")
    look(looks, 70, 140)
    assert not Alert.objects.exists()
