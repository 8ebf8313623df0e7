"""Outside of a channel's hours its messages wait, and none is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.notifications.hours import Hours
from db import clock
from notifications.models import Channel, Delivery
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.notifications.receiver import Receiver
from tests.notifications.rounds import Rounds, seen
from tests.notifications.test_channels import BODY, CHANNELS
from tests.notifications.test_delivery import DAMAGED, sent

WORK = Hours(("mon", "tue", "wed", "thu", "fri"), "08:00", "18:00", "Europe/Berlin")
NIGHT = Hours(("fri",), "22:00", "06:00", "UTC")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("hours", "moment", "sends"),
    [
        (WORK, "2026-01-05T07:00", "2026-01-05T07:00"),  # Monday, 8 o'clock in winter
        (WORK, "2026-01-05T06:59", "2026-01-05T07:00"),
        (WORK, "2026-07-06T05:59", "2026-07-06T06:00"),  # 8 o'clock in summer
        (WORK, "2026-01-05T17:00", "2026-01-06T07:00"),
        (WORK, "2026-01-09T20:00", "2026-01-12T07:00"),  # from Friday evening to Monday
        (WORK, "2026-03-27T20:00", "2026-03-30T06:00"),  # clocks are changed between
        (NIGHT, "2026-01-10T05:59", "2026-01-10T05:59"),  # Saturday, of the night of Friday
        (NIGHT, "2026-01-10T06:00", "2026-01-16T22:00"),
        (Hours(("sun",), "00:00", "24:00", "UTC"), "2026-01-11T23:59", "2026-01-11T23:59"),
        (Hours(("sun",), "00:00", "24:00", "UTC"), "2026-01-12T00:00", "2026-01-18T00:00"),
    ],
)
def test_when_a_message_is_sent(hours: Hours, moment: str, sends: str) -> None:
    assert hours.problem() == ("", "") and hours.from_(at(moment)) == at(sends)
    assert hours.include(at(moment)) == (moment == sends)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("days", []),
        ("start", "8"),
        ("end", "25:00"),
        ("end", "08:00"),
        ("time_zone", "Mars/Base"),
        ("time_zone", "../x"),
    ],
)
@pytest.mark.django_db
def test_hours_that_can_not_be_are_refused_by_their_field(admin: Api, field: str, value: object) -> None:
    status, failure = admin.call("POST", CHANNELS, BODY | {"hours": WORK.fields | {field: value}})
    assert status == 400 and field in str(failure)
    assert not Channel.objects.exists()


@pytest.mark.django_db
def test_outside_of_its_hours_a_message_waits_and_is_sent_then(
    lm: Deployment, admin: Api, channel: Channel, there: Receiver, looks: Rounds
) -> None:
    tomorrow = (clock.now() + timedelta(days=2)).strftime("%a").lower()
    hours = {"days": [tomorrow], "start": "00:00", "end": "24:00", "time_zone": "UTC"}
    status, told = admin.call("PUT", f"{CHANNELS}/pager", {"hours": hours, "tell_again_seconds": 3600})
    assert status == 200 and told["hours"] == hours
    looks.at(0, seen(DAMAGED))
    assert sent(lm, channel) == "outside of its hours; 1 message waiting" and not there.ids
    admin.call("PUT", f"{CHANNELS}/pager", {})
    assert sent(lm, channel) == "1 sent" and Delivery.objects.get().state == "sent"
    assert admin.call("GET", f"{CHANNELS}/pager")[1]["hours"] is None
