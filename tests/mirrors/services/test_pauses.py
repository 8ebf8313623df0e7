"""Pausing a mirror with a reason and an end: told everywhere, recorded, and ended by nobody but people."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from db import clock
from jobs import housekeeping
from jobs.models import Duty
from mirrors.models import Mirror
from mirrors.status.marks import happenings
from mirrors.status.mirror import brief_statuses, mirror_status
from mirrors.status.root_causes import needing
from rbac.models import User
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.mirrors.views.test_pages import text

pytestmark = pytest.mark.django_db
MIRROR = "/service/replication/v1/repositories/lake/mirrors/lake-eu"
PAGE = "/mirrors/lake-eu/"
HOUR = timedelta(hours=1)


def pause(api: Api, **terms: Any) -> dict[str, Any]:
    status, shown = api.call("POST", f"{MIRROR}/pause", terms)
    assert status == 200, shown
    return dict(shown)


def lasts_too_long() -> None:
    Mirror.objects.update(paused_until=clock.now() - 2 * HOUR)


def test_once_resumed_it_is_being_checked_and_nobody_looks_for_workers(lm: Deployment, head: str) -> None:
    Mirror.objects.update(destination_looked_at=clock.now() - HOUR)  # since then it was paused
    told = mirror_status(Mirror.objects.get()).sentence
    assert told.endswith("It is being checked now.") and "workers" not in told
    Duty.objects.filter(kind="promote").update(ended_at=clock.now() - HOUR)
    assert "Check that the controller and the workers are running" in mirror_status(Mirror.objects.get()).sentence


def test_it_says_why_until_when_and_by_whom(api: Api, lm: Deployment, head: str) -> None:
    shown = pause(api, reason="new disks", for_seconds=7200)
    assert (shown["paused"], shown["pause_reason"], shown["paused_by"]) == (True, "new disks", "olga")
    ends = datetime.fromisoformat(shown["paused_until"])
    assert timedelta(seconds=7195) < ends - datetime.fromisoformat(shown["paused_at"]) < timedelta(seconds=7205)
    assert shown["reason"].startswith(
        f"Paused by olga (new disks), meant to end at {ends:%Y-%m-%d %H:%M} UTC: no branch moves"
    )
    assert (shown["status"], shown["reason_code"]) == ("Paused", "paused")
    event = AuditEvent.objects.get(subject="mirror/lake-eu", verb="pause")
    assert (event.action, event.reason, event.after["pause_reason"]) == ("fs:OperateMirror", "new disks", "new disks")
    assert event.after["paused_until"] == f"{ends:%Y-%m-%d %H:%M:%S} UTC"


def test_resumed_nothing_of_it_is_left(api: Api, lm: Deployment, head: str) -> None:
    pause(api, reason="new disks", until=(clock.now() + HOUR).isoformat())
    shown = api.call("POST", f"{MIRROR}/resume")[1]
    assert [shown[name] for name in ("paused", "pause_reason", "paused_until", "paused_at", "paused_by")] == [
        False,
        *(None,) * 4,
    ]
    assert pause(api)["pause_reason"] is None


def test_the_end_is_moved_and_the_reason_stays(api: Api, lm: Deployment, head: str) -> None:
    began = pause(api, reason="new disks", for_seconds=3600)
    moved = pause(api, for_seconds=7200)
    assert moved["pause_reason"] == "new disks" and moved["paused_until"] > began["paused_until"]
    assert moved["paused_at"] == began["paused_at"]
    assert pause(api) | {"as_of": ""} == moved | {"as_of": ""}
    assert pause(api, until=None)["paused_until"] is None
    verbs = AuditEvent.objects.filter(subject="mirror/lake-eu").order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["pause", "change", "change"]
    [mark] = happenings(Mirror.objects.get(), clock.now() - HOUR)
    assert mark.words == "by olga: “new disks”" and mark.goes_on


def test_one_that_lasts_for_longer_goes_on_and_needs_somebody(api: Api, lm: Deployment, head: str) -> None:
    pause(api, reason="new disks", for_seconds=3600)
    assert not needing([mirror_status(Mirror.objects.get())])
    lasts_too_long()
    lm.run(Duty.objects.get(kind="promote").pk)
    reading = mirror_status(Mirror.objects.get())
    assert reading.mirror.paused and needing([reading]) == [reading]
    assert reading.reason_code == "paused_too_long" and "(new disks), meant to end at " in reading.sentence


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"reason": "x" * 201}, "reason"),
        ({"until": "2020-01-01T00:00:00Z"}, "until"),
        ({"until": "soon"}, "until"),
        ({"for_seconds": 59}, "for_seconds"),
        ({"for_seconds": 10**10}, "for_seconds"),
        ({"for_seconds": 3600, "until": None}, "for_seconds"),
        ({"because": "x"}, "because"),
    ],
)
def test_what_can_not_be_is_refused_by_its_field_and_nothing_is_paused(
    api: Api, lm: Deployment, terms: dict[str, Any], field: str
) -> None:
    status, failure = api.call("POST", f"{MIRROR}/pause", terms)
    assert status == 400 and failure["field"] == field and not Mirror.objects.get().paused
    assert api.call("POST", f"{MIRROR}/pause", [1])[0] == 400


def test_an_end_is_no_setting(api: Api, lm: Deployment) -> None:
    for body in ({"paused_until": None}, {"pause_reason": "x", "paused": True}):
        assert api.call("PATCH", MIRROR, body)[0] == 400


def test_a_version_that_knows_no_reasons_may_resume_and_pause(api: Api, lm: Deployment, head: str) -> None:
    pause(api, reason="new disks", for_seconds=3600)
    Mirror.objects.update(paused=False)
    shown = api.call("GET", MIRROR)[1]
    assert (shown["pause_reason"], shown["paused_until"]) == (None, None)
    housekeeping.look_round()
    Mirror.objects.update(paused=True)
    shown = api.call("GET", MIRROR)[1]
    assert (shown["paused"], shown["pause_reason"], shown["paused_until"]) == (True, None, None)
    assert shown["reason"].startswith("Paused: no branch moves until somebody resumes it")


def test_the_page_tells_it_and_takes_another_end(olga: Client, lm: Deployment, head: str, teammate: User) -> None:
    assert "Reason" not in text(olga.get(PAGE))
    olga.post(f"{PAGE}pause/")
    assert "no reason given" in text(olga.get(PAGE))
    olga.post(f"{PAGE}pause/", {"reason": "new disks", "for": "14400"})
    mirror = Mirror.objects.get()
    assert mirror.pause_reason == "new disks" and 3.9 * HOUR < mirror.paused_until - clock.now() < 4 * HOUR
    assert "by olga · new disks · to end" in text(olga.get(PAGE))
    olga.post(f"{PAGE}pause/", {"reason": "new disks", "for": ""})
    assert Mirror.objects.get().paused_until == mirror.paused_until
    until = f"{clock.now() + 50 * HOUR:%Y-%m-%dT%H:%M}"
    olga.post(f"{PAGE}pause/", {"until": until})
    assert f"{Mirror.objects.get().paused_until:%Y-%m-%dT%H:%M}" == until
    lasts_too_long()
    assert "was to end 2 h ago" in text(olga.get(PAGE))
    olga.post(f"{PAGE}pause/", {"for": "none"})
    assert "no end given" in text(olga.get(PAGE))
    for wrong in ({"for": "7"}, {"until": "soon"}):
        assert olga.post(f"{PAGE}pause/", wrong).status_code == 400
    tom = Client()
    tom.force_login(teammate)
    assert "new disks" in text(tom.get(PAGE)) and "Change reason or end" not in text(tom.get(PAGE))
    assert tom.post(f"{PAGE}pause/", {"reason": "mine"}).status_code == 403


def test_the_overview_names_it_as_needing_somebody(api: Api, olga: Client, lm: Deployment, head: str) -> None:
    pause(api, reason="new disks", for_seconds=3600)
    assert "nothing needs you" in text(olga.get("/"))
    lasts_too_long()
    said = text(olga.get("/"))
    assert "1 needs you" in said and "UTC, 2 h ago: no branch moves" in said


def test_branches_that_wait_for_nothing_are_up_to_date_in_a_pause(api: Api, lm: Deployment, head: str) -> None:
    pause(api)
    for reading in (mirror_status(Mirror.objects.get()), brief_statuses([Mirror.objects.get()])[0]):
        assert (reading.caught_up, reading.staying, reading.pending) == (1, 1, 0)
    Mirror.objects.update(destination_looked_at=clock.now() - HOUR)
    reading = mirror_status(Mirror.objects.get())
    assert (reading.caught_up, reading.lag_known) == (0, False)
