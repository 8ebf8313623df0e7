"""Refused attempts are on record, and nobody can flood it with them; sessions are on record too."""

from __future__ import annotations

import base64
from datetime import timedelta
from itertools import count, islice
from typing import Any
from unittest import mock

import pytest
from django.db import DatabaseError
from django.test import Client

from audit import refusals, strangers
from audit.models import AuditEvent, RefusalCount
from lakemirror_site import gunicorn_settings
from rbac import services
from rbac.models import User
from tests.cast import PASSWORD
from web import requests

pytestmark = pytest.mark.django_db

MIRRORS = "/service/replication/v1/mirrors"


def later(seconds: float) -> None:
    """Let counts be older."""
    for row in RefusalCount.objects.all():
        row.since -= timedelta(seconds=seconds)
        row.save()


@pytest.fixture
def otto(outsider: User) -> Client:
    client = Client()
    client.force_login(outsider)
    return client


def test_what_a_user_may_not_do_is_an_event_once_and_then_a_count(otto: Client) -> None:
    for _ in range(5):
        assert otto.get("/mirrors/", HTTP_X_REQUEST_ID="r-1").status_code == 403
    assert otto.get(MIRRORS).status_code == 403
    one = AuditEvent.objects.get(refused=True)
    assert (one.actor, one.action, one.arn, one.times) == ("otto", "fs:ListRepositories", "*", 1)
    assert (one.request_id, one.address) == ("r-1", "127.0.0.1")
    assert refusals.tell_counted() == 0
    later(600)
    assert refusals.tell_counted() == 1 and refusals.tell_counted() == 0
    rest = AuditEvent.objects.filter(refused=True).latest("pk")
    assert (rest.actor, rest.times) == ("otto", 5) and rest.after["since"] < rest.after["last"]
    assert otto.get("/mirrors/").status_code == 403
    assert AuditEvent.objects.filter(refused=True).count() == 3
    later(3700)
    assert refusals.prune() == 2


def test_a_call_by_key_is_told_with_the_key(client: Client, outsider: User) -> None:
    issued = services.key_create(actor="system:tests", user=outsider)
    sent = basic(issued.key.key_id, issued.secret)
    assert client.get(MIRRORS, headers=sent).status_code == 403
    by_key = AuditEvent.objects.filter(refused=True, actor="otto").get()
    assert by_key.key_id == issued.key.key_id


def basic(key_id: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{key_id}:{secret}".encode()).decode()}


def test_many_different_things_become_one(otto: Client, outsider: User) -> None:
    for number in range(refusals.MOST_EVENTS + 20):
        refusals.refused(outsider, "fs:ReadRepository", f"arn:lakefs:fs:::repository/{number}\0\ud800")
    assert AuditEvent.objects.filter(refused=True).count() == refusals.MOST_EVENTS + 1
    rest = RefusalCount.objects.get(arn="*")
    assert (rest.action, rest.times) == ("*", 20)


def test_strangers_are_counted_and_make_no_event(client: Client, owner: User, settings: object) -> None:
    before = AuditEvent.objects.count()
    for _ in range(3):
        assert client.get(MIRRORS).status_code == 401
        assert client.get(MIRRORS, headers=basic("AKIA", "wrong")).status_code == 401
        client.post("/login/", {"username": "olga", "password": "wrong"})
    client.post("/service/replication/v1/hooks/lakefs/eu-west-1", {}, content_type="application/json")
    client.get("/mirrors/")  # leads to the sign-in page: nobody is refused
    told = {row["action"]: row["total"] for row in refusals.of_strangers(RefusalCount.objects.latest("pk").last_at)}
    assert told == {"no-credentials": 3, "wrong-key": 3, "wrong-password": 3, "wrong-webhook-secret": 1}
    assert AuditEvent.objects.count() == before and RefusalCount.objects.count() == 4


def test_networks_beyond_number_count_as_one(monkeypatch: pytest.MonkeyPatch, rf: object) -> None:
    monkeypatch.setattr(refusals, "MOST_NETWORKS", 3)
    for number in range(8):
        with requests.answering(rf.get("/", REMOTE_ADDR=f"192.0.2.{number}")):
            strangers.refused("wrong-key")
            strangers.write()
    counted = dict(RefusalCount.objects.values_list("network", "times"))
    assert counted == {"192.0.2.0": 1, "192.0.2.1": 1, "192.0.2.2": 1, "others": 5}


def test_strangers_cost_a_write_now_and_then(
    client: Client, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(strangers, "GATHER_SECONDS", 600.0)
    with django_assert_num_queries(0):
        for _ in range(50):
            assert client.get(MIRRORS).status_code == 401
    assert not RefusalCount.objects.exists()
    assert strangers._writer is not None
    strangers._writer.cancel()
    monkeypatch.setattr(strangers, "_writer", None)
    gunicorn_settings.worker_exit(None, None)
    assert RefusalCount.objects.get().times == 50, "a web process that ends writes what it has"


def test_only_so_many_networks_of_strangers_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "_write_soon", lambda: None)
    monkeypatch.setattr(strangers, "MOST", 3)
    for number in range(10):
        monkeypatch.setattr(requests, "address", lambda _, n=number: f"192.0.{n}.1")
        strangers.refused("wrong-key")
    strangers.write()
    assert sum(row.times for row in RefusalCount.objects.all()) == 10
    assert RefusalCount.objects.count() == 4


def test_what_the_database_does_not_take_is_kept(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with mock.patch.object(refusals, "_count", side_effect=DatabaseError("away")):
        assert client.get(MIRRORS).status_code == 401
    assert "could not be written down yet: away" in caplog.text
    strangers.write()
    assert RefusalCount.objects.get().times == 1


def test_while_the_database_is_away_no_more_networks_are_told_apart_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "_write_soon", lambda: None)
    monkeypatch.setattr(strangers, "MOST", 3)
    asked = count()

    def three_come() -> None:
        for number in islice(asked, 3):
            monkeypatch.setattr(requests, "address", lambda _, n=number: f"192.0.{n}.1")
            strangers.refused("wrong-key")

    def away(*_: object, **__: object) -> None:
        three_come()
        raise DatabaseError("away")

    for _ in range(5):
        three_come()
        with mock.patch.object(refusals, "_count", away):
            strangers.write()
    assert len(strangers._gathered) <= 4
    strangers.write()
    assert sum(row.times for row in RefusalCount.objects.all()) == 30


def test_signing_in_and_out_are_events(client: Client, owner: User) -> None:
    client.post("/login/", {"username": "olga", "password": PASSWORD}, REMOTE_ADDR="192.0.2.7")
    client.post("/logout/")
    told = list(AuditEvent.objects.filter(actor="olga").order_by("pk").values_list("action", "arn", "address"))
    arn = "arn:lakefs:auth:::user/olga"
    assert told == [("auth:SignIn", arn, "192.0.2.7"), ("auth:SignOut", arn, "127.0.0.1")]
