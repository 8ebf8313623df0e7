"""A pause that lasts for longer than was said is told, and that it is over too; it is never ended by that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from core.notifications.rules import Rule
from db import clock
from exports.models import Export
from mirrors.models import Mirror, Repository
from notifications.conditions import observe
from notifications.models import Alert, Channel, Delivery
from tests.api import Api
from tests.exports.test_pages import an_export
from tests.mirrors.harness import Deployment
from tests.notifications.rounds import Rounds, events, open_kinds, seen, trouble

pytestmark = pytest.mark.django_db
MIRROR = "/service/replication/v1/repositories/lake/mirrors/lake-eu"
KIND = "mirror-paused-too-long"


def paused(api: Api, **terms: Any) -> None:
    assert api.call("POST", f"{MIRROR}/pause", terms)[0] == 200


def look(looks: Rounds, seconds: float) -> None:
    looks.at(seconds, observe(clock.now()))


def overdue(seconds: float = 70) -> None:
    Mirror.objects.update(paused_until=clock.now() - timedelta(seconds=seconds))


def test_it_is_told_from_its_end_on_and_over_when_it_is_resumed(
    api: Api, lm: Deployment, head: str, channel: Channel, looks: Rounds
) -> None:
    paused(api, reason="new disks", for_seconds=3600)
    look(looks, 0)
    assert not Alert.objects.exists()
    overdue()
    look(looks, 10)
    alert = Alert.objects.get()
    assert (alert.kind, alert.severity, alert.name, alert.link) == (KIND, "warning", "lake-eu", "/mirrors/lake-eu/")
    assert (
        alert.sentence.startswith("lake-eu was paused by olga (new disks), meant to end at ")
        and "1 min ago" in alert.sentence
    )
    assert alert.since == Mirror.objects.get().paused_until and "Resume" in alert.remedy
    look(looks, 20)
    assert Mirror.objects.get().paused and events() == [(KIND, "opened")]
    assert api.call("POST", f"{MIRROR}/resume")[0] == 200
    # Nobody has seen the source for long: that the pause is over is known all the same.
    Repository.objects.update(looked_at=clock.now() - timedelta(hours=1))
    for seconds in (30, 40):
        look(looks, seconds)
    assert (KIND, "closed") in events() and KIND not in open_kinds()
    assert Delivery.objects.filter(event__alert=alert).count() == 2


@pytest.mark.parametrize("terms", [{"for_seconds": 3600}, {"until": None}])
def test_it_is_over_when_the_end_is_moved(
    api: Api, lm: Deployment, head: str, looks: Rounds, terms: dict[str, Any]
) -> None:
    paused(api, for_seconds=3600)
    overdue()
    look(looks, 0)
    assert open_kinds() == [KIND]
    paused(api, **terms)
    for seconds in (10, 20):
        look(looks, seconds)
    assert not open_kinds() and Alert.objects.get().closing.startswith("Paused: ")


def test_a_pause_without_an_end_is_never_told(api: Api, lm: Deployment, head: str, looks: Rounds) -> None:
    paused(api, reason="for good")
    Mirror.objects.update(paused_at=clock.now() - timedelta(days=100))
    look(looks, 0)
    assert not Alert.objects.exists()


def test_an_export_is_told_of_too(lm: Deployment, looks: Rounds) -> None:
    export = an_export(repository="lake", paused=True, paused_until=clock.now() - timedelta(minutes=2))
    look(looks, 0)
    alert = Alert.objects.get()
    assert (alert.kind, alert.export, alert.name) == ("export-paused-too-long", export.pk, "lake · main")
    Export.objects.update(paused=False)
    for seconds in (10, 20):
        look(looks, seconds)
    assert not open_kinds()


def test_a_mirror_made_anew_under_the_name_is_not_paused(api: Api, lm: Deployment, head: str, looks: Rounds) -> None:
    paused(api, for_seconds=3600)
    overdue()
    look(looks, 0)
    Alert.objects.update(mirror=12345)
    Mirror.objects.update(paused=False)
    look(looks, 10)
    assert not open_kinds()


def test_a_rule_names_it() -> None:
    assert Rule(kinds=[KIND]).problem() == ("", "") and Rule(kinds=[KIND]).hears(KIND, "warning", name="lake-eu")


def test_what_a_newer_version_tells_of_is_left_to_it(looks: Rounds) -> None:
    looks.at(0, seen(trouble()))
    Alert.objects.update(kind="mirror-of-tomorrow", opened_at=clock.now())
    for seconds in (10, 20, 30):
        looks.at(seconds, seen())
    assert open_kinds() == ["mirror-of-tomorrow"] and not events()
