"""Rules that choose by labels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import Client

from core.notifications.kinds import AlertKind
from core.notifications.rules import Rule
from db import clock
from mirrors.models import Mirror
from notifications.conditions import observe
from notifications.models import Alert, Channel, Delivery
from tests.api import Api
from tests.exports.test_pages import an_export
from tests.mirrors.harness import Deployment
from tests.mirrors.status.test_told_no_better import damage
from tests.mirrors.views.test_pages import text
from tests.notifications.rounds import Rounds, seen, trouble

pytestmark = pytest.mark.django_db
CHANNELS = "/service/replication/v1/channels"
GOLD = {"team": "sales", "tier": "gold"}


@pytest.mark.parametrize(
    ("rule", "heard"),
    [
        (Rule(labels=["tier=gold"]), True),
        (Rule(names=["lake-*"], labels=["tier=gold", "team=s*"]), True),
        (Rule(names=["orders-*"], labels=["tier=gold"]), False),
        (Rule(names=["lake-*"], labels=["tier=silver"]), False),
        (Rule(labels=["owner"]), False),
    ],
)
def test_names_and_labels_have_to_fit_both(rule: Rule, heard: bool) -> None:
    assert rule.hears("mirror-late", "warning", name="lake-eu", labels=GOLD) is heard
    assert not rule.labels or not rule.hears("mirror-late", "warning", name="lake-eu")


def test_what_is_about_no_mirror_is_not_left_out_by_labels() -> None:
    assert Rule(labels=["tier=gold"]).hears("region-down", "error", name="", region="eu-west-1")


@pytest.mark.parametrize("bad", [["=x"], [""], ["Tier=x"], ["a" * 201], ["a"] * 101])
def test_a_rule_with_labels_that_can_not_be_is_refused(admin: Api, channel: Channel, bad: list[str]) -> None:
    assert Rule(labels=bad).problem()[0] == "labels"
    status, failure = admin.call("PUT", f"{CHANNELS}/pager", {"labels": bad})
    assert status == 400 and failure["field"].split(".")[0] == "labels"


def told_of(looks: Rounds, *labels: dict[str, str]) -> list[int]:
    """How many are told of damage to mirrors with these labels, one after another."""
    numbers = []
    for number, one in enumerate(labels):
        damaged = trouble(AlertKind.MIRROR_DAMAGED, f"mirror/lake-{number}", mirror=number + 1)
        looks.at(number, seen(replace(damaged, labels=one)))
        numbers.append(Delivery.objects.count())
    return numbers


def test_a_channel_hears_of_the_mirrors_with_its_labels(channel: Channel, looks: Rounds) -> None:
    Channel.objects.update(labels=["team=sales"])
    assert told_of(looks, {}, {"team": "ops"}, {"team": "sales"}) == [0, 0, 1]


def test_the_alert_has_the_labels_of_the_mirror_and_the_export(
    admin: Api, lm: Deployment, head: str, looks: Rounds
) -> None:
    Mirror.objects.update(labels=GOLD)
    an_export(repository="lake", state="export-failed", error="no such bucket", labels={"team": "ops"})
    damage(lm, head)
    looks.at(0, observe(clock.now()))
    assert dict(Alert.objects.values_list("kind", "labels")) == {
        "mirror-damaged": GOLD,
        "export-failed": {"team": "ops"},
    }
    [alert] = admin.call("GET", "/service/replication/v1/alerts")[1]["results"]
    assert alert["labels"] == GOLD
    Mirror.objects.update(labels={"team": "ops"})
    looks.at(10, observe(clock.now()))
    assert Alert.objects.get(kind="mirror-damaged").labels == {"team": "ops"}


def test_a_rule_is_set_by_api_and_page(lm: Deployment, admin: Api, olga: Client, channel: Channel) -> None:
    status, made = admin.call("PUT", f"{CHANNELS}/pager", {"labels": ["team=sales", "tier"]})
    assert (status, made["labels"]) == (200, ["team=sales", "tier"])
    assert "labelled team=sales, tier" in text(olga.get("/notifications/"))
    form = olga.get("/notifications/channels/pager/edit/").context["form"]
    olga.post("/notifications/channels/pager/edit/", form.initial | {"labels": "team=s*\n\ntier=gold"})
    assert Channel.objects.get().labels == ["team=s*", "tier=gold"]
