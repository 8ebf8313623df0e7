"""*Retry* of very many open objects: answered at once, carried out by the link's duty, some at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEvent
from db import clock
from jobs.models import Duty
from rbac.models import User
from replication.models import OpenObject, RetryRequest, Rule
from replication.services.links import link_pause, link_retry
from replication.services.rules import rule_retry
from replication.transitions import ledger, retrying
from replication.transitions.ledger import Tried
from tests.replication.world import World, silent

pytestmark = pytest.mark.django_db

FEW, MANY = 10, 25
REFUSED = "TargetRefused"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven are very many already, and four are some."""
    monkeypatch.setattr(retrying, "AT_ONCE", FEW)
    monkeypatch.setattr(retrying, "CHUNK", 4)


@pytest.fixture
def refused(w: World) -> World:
    """25 objects that a target refused, each tried again in a day."""
    for at in range(MANY):
        w.put(f"k{at:02}")
    w.rule()
    w.scan()
    fail(w, REFUSED)
    return w


def fail(w: World, code: str, number: int = MANY) -> None:
    becomes = {"status": "failed", "code": code, "next_try": clock.now() + timedelta(days=1), "attempts": 1}
    link = ledger.hold(w.link().pk)
    assert link is not None
    ledger.settle(link, [Tried(row.pk, row.claimed, "", becomes) for row in w.rows()[:number]])


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round has time for one chunk."""
    monkeypatch.setattr(retrying, "RETRYING_SECONDS", 0.0)


def due(w: World) -> int:
    return len(w.names(status="pending"))


def test_very_many_are_not_changed_while_somebody_waits(refused: World, owner: User) -> None:
    with CaptureQueriesContext(connection) as asked:
        assert link_retry(actor=owner, name="r", number=1) == MANY
    assert not [one for one in asked if one["sql"].startswith('UPDATE "replication_openobject"')]
    assert len(refused.names(status="failed")) == MANY
    assert AuditEvent.objects.get(verb="retry").after == {"objects": MANY, "which": "all"}


def test_they_are_tried_with_the_next_round(refused: World, owner: User) -> None:
    link_retry(actor=owner, name="r", number=1)
    refused.copy()
    assert len(refused.there()) == MANY and not refused.rows() and not RetryRequest.objects.exists()
    refused.check_counts()


@pytest.mark.usefixtures("hurried")
def test_a_round_makes_some_due_and_the_next_one_follows_at_once(refused: World, owner: User) -> None:
    refused.away.before = silent("PUT", "HEAD")
    link_retry(actor=owner, name="r", number=1)
    for round_number in range(1, 8):
        refused.copy()
        assert due(refused) == min(4 * round_number, MANY)
        refused.check_counts()
        left = RetryRequest.objects.exists()
        assert left == (round_number < 7)
        assert not left or Duty.objects.get(kind="replication-link").due_at <= clock.now()


@pytest.mark.usefixtures("hurried")
def test_a_paused_link_s_objects_are_due_when_it_goes_on(refused: World, owner: User) -> None:
    link_pause(actor=owner, name="r", number=1, paused=True)
    link_retry(actor=owner, name="r", number=1)
    for _ in range(7):
        refused.copy()
    assert due(refused) == MANY and not refused.there() and not RetryRequest.objects.exists()


@pytest.mark.usefixtures("hurried")
def test_only_those_with_the_code_and_only_those_that_were_there(refused: World, owner: User) -> None:
    fail(refused, "TargetThrottled", number=12)
    assert rule_retry(actor=owner, name="r", code="TargetThrottled") == 12
    refused.away.before = silent("PUT", "HEAD")
    refused.put("later")
    refused.home.buckets["src"].pop("k24")
    refused.scan()
    for _ in range(6):
        refused.copy()
    assert {row.code for row in refused.rows() if row.name < "k12"} <= {"", "TargetDown"}
    assert [row.code for row in refused.rows() if "k12" <= row.name < "k24"] == [REFUSED] * 12
    refused.check_counts()


@pytest.mark.usefixtures("hurried")
def test_who_asks_again_has_all_of_them_tried_again(refused: World, owner: User) -> None:
    link_retry(actor=owner, name="r", number=1)
    refused.away.before = silent("PUT", "HEAD")
    refused.copy()
    fail(refused, REFUSED, number=4)
    assert link_retry(actor=owner, name="r", number=1) == MANY and RetryRequest.objects.count() == 1
    for _ in range(8):
        refused.copy()
    assert due(refused) == MANY
    refused.check_counts()


def test_few_are_due_at_once(w: World, owner: User) -> None:
    for at in range(FEW):
        w.put(f"k{at}")
    w.rule()
    w.scan()
    fail(w, REFUSED)
    assert link_retry(actor=owner, name="r", number=1) == FEW
    assert due(w) == FEW and not RetryRequest.objects.exists()


def test_deletions_that_wait_are_not_counted_and_go_on_waiting(refused: World, owner: User) -> None:
    Rule.objects.update(markers=True)
    link = refused.link()
    for name, status, number in (("w", "waiting", 3), ("d", "deleting", 2)):
        for at in range(number):
            values = {"status": status, "kind": "delete", "since": clock.now(), "next_try": clock.now()}
            OpenObject.objects.create(link=link, key=f"{name}{at}".encode(), size=1, etag="x", **values)
        link.counts.create(status=status, code="", number=number, bytes=number)
    assert link_retry(actor=owner, name="r", number=1) == MANY
    refused.copy()
    assert len(refused.names(status="waiting")) == 3
    assert len(refused.there()) == MANY


def test_a_link_that_goes_takes_along_what_was_asked_of_it(refused: World, owner: User) -> None:
    link_retry(actor=owner, name="r", number=1)
    refused.link().delete()
    assert not RetryRequest.objects.exists()
