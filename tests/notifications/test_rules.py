"""Channels hear of what their rules say, again after their time, and not of what somebody has answered."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.test import Client

from audit.models import AuditEvent
from core.notifications.kinds import AlertKind
from core.notifications.rules import Rule
from notifications import outbox
from notifications.models import Alert, Channel, Delivery
from rbac.models import User
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.mirrors.views.test_pages import text
from tests.notifications.receiver import SECRET
from tests.notifications.rounds import Rounds, events, seen, trouble

pytestmark = pytest.mark.django_db
ALERTS = "/service/replication/v1/alerts"
CHANNELS = "/service/replication/v1/channels"
DAMAGED = trouble(AlertKind.MIRROR_DAMAGED)
HOUR = 3600


def ruled(channel: Channel, **rule: Any) -> None:
    Channel.objects.filter(pk=channel.pk).update(**rule)


def told() -> list[str]:
    return list(Delivery.objects.order_by("pk").values_list("event__verb", flat=True))


def alert() -> Alert:
    found: Alert = Alert.objects.get()
    return found


def remind(looks: Rounds, seconds: float) -> int:
    return outbox.remind(looks.start + timedelta(seconds=seconds))


def close(looks: Rounds, seconds: float) -> None:
    for more in (0, 10):
        looks.at(seconds + more, seen())


def test_what_a_rule_leaves_out_is_not_told_neither_when_it_closes(channel: Channel, looks: Rounds) -> None:
    ruled(channel, kinds=["region-down"])
    looks.at(0, seen(DAMAGED))
    close(looks, 10)
    assert len(events()) == 2 and told() == []


def test_what_was_told_is_told_to_be_over_whatever_the_rule_says_by_now(channel: Channel, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    ruled(channel, kinds=["region-down"])
    close(looks, 10)
    assert told() == ["opened", "closed"]


def test_patterns_of_names_are_of_mirrors_and_exports(lm: Deployment, channel: Channel, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    one = alert()
    one.mirror, one.export, one.name = None, 7, "orders · main"
    assert Rule(names=["orders/*"]).hears(one.kind, one.severity, name=one.pattern_name)
    assert not Rule(names=["lake*"]).hears(one.kind, one.severity, name=one.pattern_name)
    one.export = None
    assert one.pattern_name == ""


def test_without_a_time_nothing_is_told_again(channel: Channel, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    assert remind(looks, 10 * HOUR) == 0 and told() == ["opened"]


def test_what_lasts_is_told_again_after_the_channel_s_time(channel: Channel, looks: Rounds) -> None:
    ruled(channel, tell_again_seconds=HOUR)
    looks.at(0, seen(DAMAGED))
    assert [remind(looks, at) for at in (HOUR - 1, HOUR, HOUR + 10, 2 * HOUR)] == [0, 1, 0, 1]
    close(looks, 2 * HOUR + 10)
    assert remind(looks, 4 * HOUR) == 0
    assert told() == ["opened", "reminded", "reminded", "closed"]


def test_a_channel_that_never_heard_of_it_is_not_reminded(channel: Channel, looks: Rounds) -> None:
    ruled(channel, tell_again_seconds=HOUR, kinds=["region-down"])
    looks.at(0, seen(DAMAGED))
    assert remind(looks, 2 * HOUR) == 0


def test_what_somebody_sees_to_is_not_told_again_but_when_it_is_over(api: Api, channel: Channel, looks: Rounds) -> None:
    ruled(channel, tell_again_seconds=HOUR)
    looks.at(0, seen(DAMAGED))
    status, found = api.call("POST", f"{ALERTS}/{alert().pk}/acknowledge", {"note": "I call the bank"})
    assert status == 200 and (found["acknowledged_by"], found["note"]) == ("olga", "I call the bank")
    assert remind(looks, 2 * HOUR) == 0
    close(looks, 2 * HOUR)
    assert told() == ["opened", "closed"]
    written = AuditEvent.objects.get(verb="acknowledge")
    assert (written.action, written.reason) == ("fs:AcknowledgeAlert", "I call the bank")


def test_a_snooze_ends_by_itself_and_then_it_is_told_once(api: Api, channel: Channel, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    status, found = api.call("POST", f"{ALERTS}/{alert().pk}/snooze", {"seconds": HOUR})
    assert status == 200 and found["snoozed_until"] > found["opened_at"]
    assert [remind(looks, at) for at in (HOUR - 60, HOUR + 60, HOUR + 70)] == [0, 1, 0]
    assert told() == ["opened", "reminded"] and alert().snoozed_until is None


def test_what_somebody_sees_to_is_not_told_again_when_its_snooze_ends(
    api: Api, channel: Channel, looks: Rounds
) -> None:
    looks.at(0, seen(DAMAGED))
    api.call("POST", f"{ALERTS}/{alert().pk}/snooze", {"seconds": HOUR})
    api.call("POST", f"{ALERTS}/{alert().pk}/acknowledge", {})
    assert remind(looks, 2 * HOUR) == 0 and told() == ["opened"]


def test_a_snooze_that_begins_while_a_reminder_is_written_holds(channel: Channel, looks: Rounds) -> None:
    ruled(channel, tell_again_seconds=HOUR)
    looks.at(0, seen(DAMAGED))
    as_read, until = alert(), looks.start + timedelta(hours=5)
    Alert.objects.update(snoozed_until=until, snoozed_by="olga")
    with mock.patch.object(outbox, "_silent_since", return_value=[as_read]):
        assert remind(looks, 2 * HOUR) == 0
    assert alert().snoozed_until == until and told() == ["opened"]


def test_a_snooze_is_ended_early(api: Api, channel: Channel, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    api.call("POST", f"{ALERTS}/{alert().pk}/snooze", {"seconds": HOUR})
    assert api.call("POST", f"{ALERTS}/{alert().pk}/snooze", {"seconds": 0})[1]["snoozed_until"] is None
    assert remind(looks, 2 * HOUR) == 0
    assert list(
        AuditEvent.objects.filter(action="fs:AcknowledgeAlert").order_by("pk").values_list("verb", flat=True)
    ) == [
        "snooze",
        "wake",
    ]


@pytest.mark.parametrize("seconds", [-1, 59, 30 * 86400 + 1, "x", None])
def test_a_snooze_has_an_end_that_can_be(api: Api, channel: Channel, looks: Rounds, seconds: Any) -> None:
    looks.at(0, seen(DAMAGED))
    status, failure = api.call("POST", f"{ALERTS}/{alert().pk}/snooze", {"seconds": seconds})
    assert status == 400 and failure["field"] == "seconds"


def test_what_has_closed_is_not_answered(api: Api, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    close(looks, 10)
    for verb, body in (("acknowledge", {}), ("snooze", {"seconds": HOUR})):
        assert api.call("POST", f"{ALERTS}/{alert().pk}/{verb}", body)[0] == 409
    assert api.call("POST", f"{ALERTS}/999999/acknowledge", {})[0] == 404


def test_who_only_looks_does_not_answer(viewer: Api, teammate: User, lm: Deployment, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    assert viewer.call("POST", f"{ALERTS}/{alert().pk}/acknowledge", {})[0] == 403
    client = Client()
    client.force_login(teammate)
    assert "Acknowledge" not in text(client.get("/notifications/"))


def test_by_page_an_alert_is_acknowledged_and_snoozed(lm: Deployment, olga: Client, looks: Rounds) -> None:
    looks.at(0, seen(DAMAGED))
    page = f"/notifications/{alert().pk}"
    assert "Alert acknowledged: no reminders are sent" in text(
        olga.post(f"{page}/acknowledge/", {"note": "mine"}, follow=True)
    )
    said = text(olga.post(f"{page}/snooze/", {"seconds": "3600"}, follow=True))
    assert "acknowledged by olga" in said and ": mine" in said and "snoozed by olga until" in said
    assert "Snooze ended." in text(olga.post(f"{page}/snooze/", {"seconds": "0"}, follow=True))
    assert olga.post(f"{page}/snooze/", {"seconds": "soon"}).status_code == 400


def test_a_rule_is_set_by_api_and_page(lm: Deployment, admin: Api, olga: Client, channel: Channel) -> None:
    rule = {
        "least_severity": "error",
        "kinds": ["mirror-blocked"],
        "names": ["lake-*"],
        "regions": ["eu-*"],
        "tell_again_seconds": 14400,
    }
    status, made = admin.call("PUT", f"{CHANNELS}/pager", rule)
    assert status == 200 and {name: made[name] for name in rule} == rule
    words = "Error and above of kind mirror-blocked about lake-* in eu-*; reminders every 4 hours"
    assert words in text(olga.get("/notifications/"))
    form = olga.get("/notifications/channels/pager/edit/").context["form"]
    sent = form.initial | {"names": "lake-*\n\norders/*", "kinds": []}
    olga.post("/notifications/channels/pager/edit/", sent)
    kept = Channel.objects.get()
    assert (kept.names, kept.kinds, kept.least_severity, kept.tell_again_seconds) == (
        ["lake-*", "orders/*"],
        [],
        "error",
        14400,
    )
    assert kept.secrets().signing_secret == SECRET


@pytest.mark.parametrize(
    ("field", "value"),
    [("least_severity", "loud"), ("kinds", ["x"]), ("names", [""]), ("regions", "eu"), ("tell_again_seconds", 5)],
)
def test_a_rule_that_can_not_be_is_refused_by_its_field(admin: Api, channel: Channel, field: str, value: Any) -> None:
    status, failure = admin.call("PUT", f"{CHANNELS}/pager", {field: value})
    assert status == 400 and failure["field"].split(".")[0] == field
