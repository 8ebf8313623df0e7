"""What pages and API tell of alerts, and to whom."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from core.notifications.kinds import AlertKind
from db import clock
from mirrors.models import Mirror
from notifications.models import Alert
from rbac.models import User
from tests.api import Api
from tests.exports.test_pages import an_export
from tests.mirrors.harness import Deployment
from tests.mirrors.views.test_pages import text
from tests.notifications.rounds import Rounds, seen, trouble

pytestmark = pytest.mark.django_db
ALERTS = "/service/replication/v1/alerts"


@pytest.fixture
def told(lm: Deployment) -> None:
    """One alert that is open, one that closed, and one that is only watched so far."""
    looks = Rounds(clock.now())
    tampered = trouble(AlertKind.MIRROR_TAMPERED)
    looks.at(0, seen(tampered))
    for seconds in (10, 20):
        looks.at(seconds, seen(trouble(AlertKind.MIRROR_DAMAGED), trouble(AlertKind.MIRROR_LATE)))
    Alert.objects.update(mirror=Mirror.objects.get().pk)


def test_the_page_tells_what_is_open_and_what_closed(told: None, olga: Client) -> None:
    said = text(olga.get("/notifications/"))
    assert "1 open alert." in said and "Mirror damagedlake-eu Main is 9 min behind. Critical since" in said
    closed = said.partition("Recently closed")[2]
    assert (
        closed.index("Mirror tamperedlake-eu") < closed.index("Critical from") < closed.index("When it closed: Up to")
    )
    assert not closed.lstrip().startswith("Mirror tamperedlake-eu Up to date")
    assert "Mirror late" not in said


def test_the_page_says_that_nothing_is_open(lm: Deployment, olga: Client) -> None:
    assert "No open alerts." in text(olga.get("/notifications/"))


def test_nothing_becomes_markup(told: None, olga: Client) -> None:
    Alert.objects.update(sentence="<script>", name="<b>", closing="<i>")
    page = olga.get("/notifications/").content.decode()
    assert not [word for word in ("<b>", "<i>", ": <script>") if word in page]


def test_the_api_lists_them_the_last_one_first(told: None, api: Api) -> None:
    status, found = api.call("GET", ALERTS)
    assert status == 200 and [row["kind"] for row in found["results"]] == ["mirror-damaged", "mirror-tampered"]
    one = found["results"][0]
    assert (one["status"], one["severity"], one["url"]) == ("open", "critical", "/mirrors/lake-eu/")
    assert one["closed_at"] is None and one["remedy"].startswith("Open its backlog")


def test_the_api_narrows_them(told: None, api: Api) -> None:
    for wanted, kind in (("open", "mirror-damaged"), ("closed", "mirror-tampered")):
        assert [row["kind"] for row in api.call("GET", f"{ALERTS}?status={wanted}")[1]["results"]] == [kind]
    status, failure = api.call("GET", f"{ALERTS}?status=ajar")
    assert status == 400 and failure["field"] == "status"


def test_pages_of_results_follow_each_other(told: None, api: Api) -> None:
    first = api.call("GET", f"{ALERTS}?amount=1")[1]
    second = api.call("GET", f"{ALERTS}?amount=1&after={first['pagination']['next_offset']}")[1]
    assert [first["results"][0]["kind"], second["results"][0]["kind"]] == ["mirror-damaged", "mirror-tampered"]


def test_who_may_see_no_mirror_sees_no_alert(told: None, outsider: User) -> None:
    assert Api(outsider).call("GET", ALERTS)[0] == 403
    client = Client()
    client.force_login(outsider)
    assert client.get("/notifications/").status_code == 403


def test_an_export_that_one_may_not_see_has_no_alert_for_one(told: None, teammate: User) -> None:
    from rbac import services

    export = an_export(repository="lake")
    Alert.objects.update(mirror=None, export=export.pk)
    assert len(Api(teammate).call("GET", ALERTS)[1]["results"]) == 2
    deny = [{"effect": "deny", "action": ["fs:ReadBranch"], "resource": "*"}]
    policy = services.policy_put(actor="system:tests", document={"id": "NoBranch", "statement": deny})
    services.policy_attach(actor="system:tests", policy=policy, user=teammate)
    assert Api(teammate).call("GET", ALERTS)[1]["results"] == []


def test_links_are_whole_where_the_site_is_configured(told: None, api: Api, tell: Any) -> None:
    tell(site_url="https://lake.example.com/")
    assert api.call("GET", ALERTS)[1]["results"][0]["url"] == "https://lake.example.com/mirrors/lake-eu/"
