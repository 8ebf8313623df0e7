"""Checks that found problems are told: the audit's chain, rules of garbage collection, the last test of a region."""

from __future__ import annotations

import pytest
from django.db.models import QuerySet

from audit.models import AuditChain, AuditEvent
from audit.rounds import look_round
from audit.verify import note, verify
from core.errors import Unreachable
from core.mirroring.explain.gc_rules import BothRules, RulesRead, rules_json
from core.types import GcRules
from db import clock
from installations.models import InstallationTest
from mirrors.models import Mirror
from notifications.conditions import observe
from notifications.models import Alert
from rbac import services as rbac
from rbac.models import User
from tests.installations.test_contact import failing
from tests.mirrors.harness import Deployment
from tests.notifications.rounds import Rounds, open_kinds

pytestmark = pytest.mark.django_db
REGION = "eu-west-1"


def look(looks: Rounds, *seconds: float) -> None:
    for at in seconds:
        looks.at(at, observe(clock.now()))


# --- the audit's chain ------------------------------------------------------------------------------------------------


def test_a_chain_that_is_broken_is_told_at_once_until_all_of_it_was_read_again(
    lm: Deployment, owner: User, looks: Rounds
) -> None:
    rbac.key_create(actor=owner, user=owner)
    look_round()
    look(looks, 0)
    assert not open_kinds()
    event = AuditEvent.objects.filter(number__gt=0).order_by("number").first()
    assert event is not None
    was = event.reason
    rows = QuerySet(model=AuditEvent).filter(pk=event.pk)  # past what the application allows
    rows.update(reason="not what was written")
    note(verify())
    look(looks, 10)
    alert = Alert.objects.get()
    assert (alert.kind, alert.severity, alert.link) == ("audit-broken", "critical", "/audit/")
    assert alert.sentence.startswith(f"The audit chain is broken: event {event.number} ") and "backup" in alert.remedy
    rows.update(reason=was)
    look(looks, 20, 30)
    assert open_kinds() == ["audit-broken"]
    note(verify())
    look(looks, 40, 50)
    assert not open_kinds() and Alert.objects.get().closing == "The audit chain is whole."


def test_where_nothing_was_chained_yet_nothing_is_told(lm: Deployment) -> None:
    AuditChain.objects.all().delete()
    assert not observe(clock.now()).troubles


# --- rules of garbage collection --------------------------------------------------------------------------------------

OWN = BothRules(RulesRead(), RulesRead(GcRules(default_days=7)))
UNREAD = BothRules(RulesRead(), RulesRead.of(Unreachable("http://eu did not answer")))


def rules(both: BothRules) -> None:
    Mirror.objects.update(gc_rules=rules_json(both), gc_rules_at=clock.now())


def test_a_mirror_with_rules_of_its_own_is_told_until_it_has_none(lm: Deployment, head: str, looks: Rounds) -> None:
    rules(OWN)
    look(looks, 0, 60)
    alert = Alert.objects.get()
    assert (alert.kind, alert.severity, alert.name) == ("mirror-garbage-collection", "warning", "lake-eu")
    assert alert.sentence.startswith("The repository lake-eu has garbage-collection rules of its own")
    rules(UNREAD)
    look(looks, 70, 80, 90)
    assert open_kinds() == ["mirror-garbage-collection"]
    rules(BothRules(RulesRead(), RulesRead()))
    look(looks, 100, 110)
    assert not open_kinds()


# --- tests of regions -------------------------------------------------------------------------------------------------


def tested(*states: str) -> None:
    checks = [{"id": f"c{n}", "state": state, "message": f"check {n}", "fix": ""} for n, state in enumerate(states)]
    found = {"tested_at": clock.now(), "reachable": True, "checks": checks}
    InstallationTest.objects.update_or_create(region=REGION, defaults=found)


def test_the_last_test_of_a_region_is_told_until_one_passes(lm: Deployment, head: str, looks: Rounds) -> None:
    tested("ok", "failed", "failed", "warning")
    look(looks, 0, 65)
    alert = Alert.objects.get()
    assert (alert.kind, alert.severity, alert.region) == ("region-test-failed", "warning", REGION)
    assert alert.sentence == "The last test of eu-west-1 found 2 problems: check 1."
    assert alert.link == f"/installations/{REGION}/"
    tested("ok", "unknown", "warning")
    look(looks, 70, 80)
    assert not open_kinds()


def test_settings_that_change_take_its_alert_along(lm: Deployment, head: str, looks: Rounds) -> None:
    tested("failed")
    look(looks, 0, 65)
    InstallationTest.objects.all().delete()
    look(looks, 70, 80)
    assert not open_kinds() and "changed since its last test" in Alert.objects.get().closing


def test_a_test_in_an_outage_is_told_with_the_outage(lm: Deployment, head: str) -> None:
    failing(lm, seconds=70)
    tested("failed")
    found = {one.condition.kind.value: one.condition.cause for one in observe(clock.now()).troubles}
    assert found["region-test-failed"] == found["region-down"] or found["region-test-failed"].startswith("region/")
