"""A key that is about to expire is told before, until something takes its place; who may not list it hears nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.test import Client

from db import clock
from notifications.conditions import observe
from notifications.conditions.keys import look_at_keys, owner_of
from notifications.conditions.observation import Observation
from notifications.models import Alert
from rbac import services as rbac
from rbac.models import AccessKey, User
from tests.api import Api
from tests.mirrors.harness import Deployment
from tests.mirrors.views.test_pages import text
from tests.notifications.rounds import Rounds, open_kinds

pytestmark = pytest.mark.django_db
ALERTS = "/service/replication/v1/alerts"
DAY = timedelta(days=1)
BOTH = ["key-expiring", "key-expiring-soon"]


def a_key(
    user: User, *, left: timedelta, lives: timedelta = 90 * DAY, description: str = "nightly export"
) -> AccessKey:
    """One that was made so long ago that this is left of its life."""
    key = rbac.key_create(actor="system:tests", user=user, description="nightly export").key
    ends = clock.now() + left
    AccessKey.objects.filter(pk=key.pk).update(expires_at=ends, created_at=ends - lives)
    return AccessKey.objects.get(pk=key.pk)


def kinds() -> list[str]:
    seen = Observation()
    look_at_keys(seen, clock.now())
    return [trouble.condition.kind.value for trouble in seen.troubles]


def look(looks: Rounds, *seconds: float) -> None:
    for at in seconds:
        looks.at(at, observe(clock.now()))


@pytest.mark.parametrize(
    ("left", "told"),
    [(20 * DAY, []), (13.9 * DAY, BOTH[:1]), (3.1 * DAY, BOTH[:1]), (2.9 * DAY, BOTH), (-DAY / 100, [])],
)
def test_it_is_told_two_weeks_before_and_once_more_three_days_before(
    owner: User, left: timedelta, told: list[str]
) -> None:
    a_key(owner, left=left)
    assert kinds() == told


def test_a_key_without_an_end_or_of_a_few_days_is_not_told(owner: User) -> None:
    rbac.key_create(actor="system:tests", user=owner)
    a_key(owner, left=DAY, lives=2 * DAY)
    assert kinds() == []


def test_the_alert_says_whose_until_when_and_leads_to_the_key(lm: Deployment, owner: User, looks: Rounds) -> None:
    key = a_key(owner, left=10 * DAY + timedelta(hours=1))
    look(looks, 0)
    alert = Alert.objects.get()
    assert (alert.kind, alert.severity, alert.name) == ("key-expiring", "warning", f"Access key {key.key_id}")
    ends = f"{key.expires_at:%Y-%m-%d %H:%M} UTC"
    assert alert.sentence == f"The access key {key.key_id} of olga (nightly export) expires in 10 days, at {ends}."
    assert alert.link == f"/access/users/olga/keys/#key-{key.key_id}" and "Rotate" in alert.remedy
    assert owner_of(alert.subject) == "olga"


def test_rotated_it_is_over_and_the_old_one_is_not_told_again(lm: Deployment, owner: User, looks: Rounds) -> None:
    key = a_key(owner, left=2 * DAY)
    look(looks, 0)
    assert open_kinds() == BOTH
    rbac.key_rotate(actor=owner, key=key)
    look(looks, 10, 20)
    assert not open_kinds()
    assert {alert.closing for alert in Alert.objects.all()} == {f"Another key has taken the place of {key.key_id}."}


def test_a_key_for_another_purpose_takes_no_place(owner: User) -> None:
    a_key(owner, left=2 * DAY)
    rbac.key_create(actor="system:tests", user=owner, description="something else")
    assert kinds() == BOTH
    new = rbac.key_create(actor="system:tests", user=owner, description="nightly export").key
    assert kinds() == []
    rbac.key_disable(actor=owner, key=new)
    assert kinds() == BOTH


@pytest.mark.parametrize("ends", ["disabled", "expired", "deleted", "user"])
def test_it_is_over_when_the_key_has_ended(lm: Deployment, teammate: User, looks: Rounds, ends: str) -> None:
    key = a_key(teammate, left=2 * DAY)
    look(looks, 0)
    if ends == "disabled":
        rbac.key_disable(actor=teammate, key=key)
    elif ends == "expired":
        AccessKey.objects.update(expires_at=clock.now() - timedelta(seconds=1))
    elif ends == "deleted":
        rbac.key_delete(actor=teammate, key=key)
    else:
        User.objects.filter(pk=teammate.pk).update(is_active=False)
    look(looks, 10, 20)
    assert not open_kinds()
    words = {
        "disabled": f"The access key {key.key_id} is disabled.",
        "expired": f"The access key {key.key_id} has expired.",
        "deleted": f"Access key {key.key_id} no longer exists.",
        "user": f"{teammate.username.capitalize()} is disabled.",
    }
    assert {alert.closing for alert in Alert.objects.all()} == {words[ends]}


def test_who_may_not_list_a_user_s_keys_hears_nothing_of_them(
    admin: Api, api: Api, viewer: Api, lm: Deployment, owner: User, teammate: User, looks: Rounds
) -> None:
    a_key(teammate, left=10 * DAY)
    key = a_key(owner, left=10 * DAY)
    look(looks, 0)

    def heard(by: Api) -> set[str]:
        return {owner_of(alert["subject"]) for alert in by.call("GET", ALERTS)[1]["results"]}

    assert heard(admin) == {"olga", teammate.username}
    assert heard(viewer) == {teammate.username}
    client = Client()
    client.force_login(teammate)
    assert key.key_id not in text(client.get("/notifications/"))


def test_the_page_of_keys_says_that_one_expires(lm: Deployment, owner: User, olga: Client) -> None:
    key = a_key(owner, left=10 * DAY)
    assert "Expires soon" in text(olga.get("/access/users/olga/keys/"))
    AccessKey.objects.filter(pk=key.pk).update(expires_at=datetime.max.replace(tzinfo=clock.now().tzinfo, year=2100))
    assert "Expires soon" not in text(olga.get("/access/users/olga/keys/"))
