"""In a maintenance window alerts are shown and not sent; what is still open afterwards is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.notifications.maintenance import Maintenance
from db import clock
from mirrors.models import Mirror
from notifications import outbox
from notifications.models import Alert, Channel, MaintenanceWindow
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.notifications.receiver import Receiver
from tests.notifications.rounds import Rounds, seen
from tests.notifications.test_alerts import text
from tests.notifications.test_delivery import DAMAGED, sent, told
from web.serializers import rfc3339

pytestmark = pytest.mark.django_db
WINDOWS = "/service/replication/v1/maintenance-windows"


def plan(minutes: float = 60, **more: Any) -> dict[str, Any]:
    return {"ends_at": rfc3339(clock.now() + timedelta(minutes=minutes)), "reason": "new disks", **more}


@pytest.mark.parametrize(
    ("names", "regions", "covered"),
    [((), (), True), (("lake-*",), (), True), (("other",), (), False), (("lake-*",), ("us-*",), False)],
)
def test_what_a_window_covers(names: tuple[str, ...], regions: tuple[str, ...], covered: bool) -> None:
    window = Maintenance(clock.now(), clock.now(), "x", names, regions)
    assert window.covers(name="lake-eu", region="eu-west-1") == covered
    assert not Maintenance(clock.now(), clock.now(), "x", ("*",)).covers(name="", region="eu-west-1")


def test_what_opens_in_a_window_is_sent_after_it(
    lm: Deployment, admin: Api, channel: Channel, there: Receiver, looks: Rounds
) -> None:
    status, made = admin.call("POST", WINDOWS, plan(regions=["eu-*"]))
    assert (status, made["state"], made["reason"]) == (201, "running", "new disks")
    looks.at(60, seen(DAMAGED))
    assert sent(lm, channel) == "0 sent" and Alert.objects.open().get().muted
    assert outbox.after_maintenance(clock.now()) == 0
    assert admin.call("POST", f"{WINDOWS}/{made['id']}/end", {})[1]["state"] == "ended"
    now = clock.now()
    assert [outbox.after_maintenance(now), outbox.after_maintenance(now)] == [1, 0]
    sent(lm, channel)
    assert told(there) == [("opened", "mirror-damaged")]


def test_what_is_over_within_a_window_is_never_sent(
    lm: Deployment, admin: Api, channel: Channel, there: Receiver, looks: Rounds
) -> None:
    admin.call("POST", WINDOWS, plan())
    looks.at(60, seen(DAMAGED))
    for seconds in (70, 80):
        looks.at(seconds, seen())
    assert outbox.after_maintenance(clock.now() + timedelta(days=1)) == 0
    assert sent(lm, channel) == "0 sent" and not there.ids


def test_what_was_sent_before_is_told_to_be_over_and_not_told_again(
    lm: Deployment, admin: Api, channel: Channel, there: Receiver, looks: Rounds
) -> None:
    looks.at(0, seen(DAMAGED))
    sent(lm, channel)
    Channel.objects.update(tell_again_seconds=3600)
    admin.call("POST", WINDOWS, plan(minutes=600))
    assert outbox.remind(clock.now() + timedelta(hours=2)) == 0
    for seconds in (10, 20):
        looks.at(seconds, seen())
    sent(lm, channel)
    assert told(there) == [("opened", "mirror-damaged"), ("closed", "mirror-damaged")]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"reason": "x" * 201}, "reason"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "ends_at"),
        ({"ends_at": "2099-01-01T00:00:00Z"}, "ends_at"),
        ({"names": [""]}, "names"),
    ],
)
def test_what_can_not_be_is_refused_by_its_field(admin: Api, change: dict[str, Any], field: str) -> None:
    status, failure = admin.call("POST", WINDOWS, plan() | change)
    assert status == 400 and field in str(failure) and not MaintenanceWindow.objects.exists()


def test_one_is_listed_audited_and_ended_once(admin: Api) -> None:
    later = rfc3339(clock.now() + timedelta(minutes=10))
    number = admin.call("POST", WINDOWS, plan(starts_at=later))[1]["id"]
    [one] = admin.call("GET", WINDOWS)[1]["results"]
    assert (one["id"], one["state"]) == (number, "planned")
    assert admin.call("POST", f"{WINDOWS}/{number}/end", {})[0] == 200
    assert admin.call("POST", f"{WINDOWS}/{number}/end", {})[0] == 409
    assert admin.call("POST", f"{WINDOWS}/999999/end", {})[0] == 404
    rows = AuditEvent.objects.filter(action="fs:ManageMaintenance").order_by("pk")
    assert list(rows.values_list("verb", flat=True)) == ["create", "end"]


def test_who_only_looks_plans_none(viewer: Api, lm: Deployment) -> None:
    assert viewer.call("POST", WINDOWS, plan())[0] == 403 and viewer.call("GET", WINDOWS)[0] == 200


def test_by_page_one_is_created_shown_with_its_alerts_and_ended(lm: Deployment, olga: Client, looks: Rounds) -> None:
    form = olga.get("/notifications/maintenance/new/").context["form"].initial
    times = {name: form[name].strftime("%Y-%m-%dT%H:%M") for name in ("starts_at", "ends_at")}
    wrong = olga.post("/notifications/maintenance/new/", times | {"ends_at": times["starts_at"], "reason": "x"})
    assert wrong.status_code == 400 and "must be in the future" in text(wrong)
    said = text(olga.post("/notifications/maintenance/new/", times | {"reason": "new disks"}, follow=True))
    assert "Maintenance window created." in said and "No messages about everything" in said
    looks.at(60, seen(DAMAGED))
    Alert.objects.update(mirror=Mirror.objects.get().pk)
    assert "in maintenance until" in text(olga.get("/notifications/"))
    end = f"/notifications/maintenance/{MaintenanceWindow.objects.get().pk}/end/"
    said = text(olga.post(end, follow=True))
    assert "Maintenance window ended." in said and "End now" not in said
