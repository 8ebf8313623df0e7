"""A region's TLS certificate is told before it expires, and until another one is seen."""

from __future__ import annotations

from datetime import timedelta
from unittest import mock

import pytest
from django.test import Client

from core.errors import Unreachable
from core.installations.server_certificates import ServerCertificate
from db import clock
from deployment.wiring import clients
from installations import contact
from installations.models import Contact
from jobs.models import Duty
from notifications.conditions import observe
from notifications.conditions.observation import Observation
from notifications.conditions.server_certificates import look_at_certificates
from notifications.models import Alert
from tests.api import Api
from tests.installations.test_contact import asked
from tests.mirrors.harness import Deployment
from tests.mirrors.views.test_pages import text
from tests.notifications.rounds import Rounds, open_kinds

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
BOTH = ["tls-certificate-expiring", "tls-certificate-expiring-soon"]


def valid(left: timedelta, lives: timedelta = 90 * DAY) -> ServerCertificate:
    ends = clock.now() + left
    return ServerCertificate(ends - lives, ends)


def seen(lm: Deployment, certificate: ServerCertificate | Exception | None) -> Contact:
    """A round of asking the lakeFS of eu-west-1, some time after the one before."""
    Contact.objects.update(certificate_read_at=None)
    with mock.patch.object(clients, "lakefs_certificate", side_effect=[certificate]):
        return asked(lm)


def kinds() -> list[str]:
    found = Observation()
    look_at_certificates(found, clock.now())
    return [trouble.condition.kind.value for trouble in found.troubles]


@pytest.mark.parametrize(
    ("left", "lives", "told"),
    [
        (20 * DAY, 90 * DAY, []),
        (13.9 * DAY, 90 * DAY, BOTH[:1]),
        (2.9 * DAY, 90 * DAY, BOTH),
        (-DAY, 90 * DAY, BOTH),
        (2 * DAY, 6 * DAY, []),
    ],
)
def test_it_is_told_two_weeks_before_and_once_more_three_days_before(
    lm: Deployment, left: timedelta, lives: timedelta, told: list[str]
) -> None:
    seen(lm, valid(left, lives))
    assert kinds() == told


def test_it_is_told_until_another_one_is_seen(lm: Deployment, olga: Client, api: Api, looks: Rounds) -> None:
    last = seen(lm, valid(2 * DAY)).certificate
    assert last is not None
    looks.at(0, observe(clock.now()))
    assert sorted(open_kinds()) == BOTH
    alert = Alert.objects.latest("severity")
    assert alert.sentence.startswith("The TLS certificate of the lakeFS of eu-west-1 expires in ")
    assert (alert.name, alert.region) == ("TLS certificate of the lakeFS of eu-west-1", "eu-west-1")
    assert "TLS certificates lakeFS: valid until" in text(olga.get(alert.link))
    shown = api.call("GET", "/service/replication/v1/installations/eu-west-1")[1]
    assert shown["lakefs_certificate_until"].startswith(f"{last.valid_until:%Y-%m-%dT%H:%M}")
    assert shown["store_certificate_until"] is None
    assert seen(lm, Unreachable("the certificate of eu could not be read")).certificate == last
    assert (
        "it answers; the certificate of eu"
        in Duty.objects.get(
            kind=contact.DUTY, subject=Contact.objects.get(region="eu-west-1", service="lakefs").pk
        ).outcome
    )
    looks.at(10, observe(clock.now()))
    assert sorted(open_kinds()) == BOTH
    seen(lm, valid(90 * DAY))
    for seconds in (20, 30):
        looks.at(seconds, observe(clock.now()))
    assert not open_kinds()


def test_it_is_read_now_and_then_and_where_there_is_none_that_is_known(lm: Deployment) -> None:
    seen(lm, valid(90 * DAY))
    with mock.patch.object(clients, "lakefs_certificate") as read:
        asked(lm)
    assert not read.called
    assert asked(lm).certificate and seen(lm, None).certificate is None


def test_one_that_has_expired_says_since_when(lm: Deployment) -> None:
    seen(lm, valid(-2 * DAY))
    found = Observation()
    look_at_certificates(found, clock.now())
    assert "of eu-west-1 expired 2 days ago, at" in found.troubles[0].condition.sentence
