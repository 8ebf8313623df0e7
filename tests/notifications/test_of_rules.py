"""Alerts about replication rules and their links."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from core.access.documents import allow, policy_document
from core.notifications.kinds import AlertKind
from core.replicating.states import Code, Health, OpenStatus
from db import clock
from installations.models import Contact
from notifications.conditions import Observation, observe
from notifications.models import Alert
from rbac import services as rbac
from replication.models import Approval, Link, Rule
from tests.api import Api
from tests.cast import person
from tests.mirrors.harness import Deployment
from tests.notifications.rounds import Rounds, open_kinds
from tests.replication.factories import a_rule, in_trouble, open_object

pytestmark = pytest.mark.django_db
ALERTS = "/service/replication/v1/alerts"


def kinds(seen: Observation) -> Mapping[str, str]:
    """Of what is wrong with rules: the kind, by what follows the rule's own subject."""
    pairs = ((one.condition.subject, one.condition.kind.value) for one in seen.troubles if one.rule)
    return {subject.partition("/")[2].partition("/")[2]: kind for subject, kind in pairs}


def found(**link: Any) -> Mapping[str, str]:
    Link.objects.update(**link)
    return kinds(observe(clock.now()))


def test_what_is_well_is_no_trouble(lm: Deployment) -> None:
    a_rule()
    assert found() == {}


def test_a_link_that_is_blocked_and_objects_that_failed(lm: Deployment) -> None:
    rule = in_trouble()
    seen = observe(clock.now())
    assert kinds(seen) == {"links/1": "rule-blocked", "links/2": "rule-failed"}
    blocked, failed = seen.troubles
    assert (blocked.name, blocked.rule, blocked.region, blocked.link, dict(blocked.labels)) == (
        "orders",
        rule.pk,
        "eu-west-1",
        "/replication/orders/#link-1",
        {"team": "sales"},
    )
    assert "s3 answered 403 to put" in blocked.condition.sentence and blocked.condition.since is not None
    assert failed.condition.sentence.startswith("s3://other/orders: 2 objects could not be copied")
    assert failed.link == "/replication/orders/open/?link=2&status=failed"


def test_what_somebody_has_to_confirm_or_approve(lm: Deployment) -> None:
    rule = a_rule("logs", markers=True)
    now = clock.now()
    assert found(stale_since=now, stale_message="its pin is gone") == {"links/1": "rule-stale"}
    frozen = {"frozen_since": now, "frozen_code": "empty", "frozen_message": "the source is empty"}
    assert found(stale_since=None, **frozen) == {"links/1": "rule-deletes-frozen"}
    Approval.objects.create(link=rule.links.get(), number=12, bytes=1, of=20, asked_at=now, expires_at=now)
    assert found(frozen_since=None) == {"links/1": "rule-deletes-waiting"}
    [waiting] = [one for one in observe(now).troubles if one.rule]
    assert waiting.link == "/replication/logs/deletes/"
    assert "12 deletions wait" in waiting.condition.sentence


def test_a_link_is_down_for_long_before_anybody_is_told(lm: Deployment) -> None:
    a_rule()
    down = {"health": Health.DOWN.value, "health_code": Code.TARGET_DOWN.value, "health_message": "no answer"}
    assert found(**down, health_since=clock.now() - timedelta(minutes=9)) == {}
    assert found(health_since=clock.now() - timedelta(minutes=11)) == {"links/1": "rule-down"}


def test_an_outage_of_the_store_explains_that_a_link_is_down(lm: Deployment) -> None:
    a_rule()
    now = clock.now()
    Link.objects.update(health=Health.DOWN.value, health_since=now - timedelta(minutes=20))
    fields = {"asked_at": now, "failing_since": now - timedelta(minutes=20), "kind": "unreachable"}
    Contact.objects.update_or_create(region="eu-west-1", service="store", defaults=fields)
    [trouble] = [one for one in observe(now).troubles if one.rule]
    assert trouble.condition.cause == "region/eu-west-1/store"


def test_a_target_that_cannot_be_listed(lm: Deployment) -> None:
    a_rule()
    assert found(listing_error="access denied") == {"links/1": "rule-unknown"}


def test_a_source_that_cannot_be_listed_is_one_alert_for_all_links(lm: Deployment) -> None:
    rule = a_rule("logs", "s3://dst/1", "s3://dst/2")
    Rule.objects.update(error="access denied", error_since=clock.now() - timedelta(hours=1))
    troubles = [one for one in observe(clock.now()).troubles if one.rule]
    causes = [(one.condition.kind, one.condition.cause) for one in troubles]
    assert causes[0] == (AlertKind.RULE_NOT_COMPARED, "")
    assert causes[1:] == [(AlertKind.RULE_UNKNOWN, f"rule/{rule.pk}")] * 2
    assert troubles[0].condition.sentence == "The places can't be compared: access denied."
    assert troubles[0].condition.since == Rule.objects.get().error_since


def test_a_comparison_that_is_overdue(lm: Deployment) -> None:
    a_rule()
    ended = clock.now() - timedelta(hours=2)
    Rule.objects.update(full_began_at=ended - timedelta(minutes=1), full_ended_at=ended)
    assert found() == {"": "rule-not-compared"}
    Rule.objects.update(paused=True)
    assert found() == {}


def test_pauses_that_last_for_longer_than_was_said(lm: Deployment) -> None:
    a_rule()
    before = clock.now() - timedelta(minutes=5)
    assert found(paused=True, paused_until=before) == {"links/1/pause": "rule-paused-too-long"}
    Rule.objects.update(paused=True, paused_until=before)
    assert found(paused=False) == {"pause": "rule-paused-too-long"}


def test_an_alert_stays_open_while_nobody_knows_and_closes_with_how_it_is_now(lm: Deployment) -> None:
    rule = a_rule()
    link = rule.links.get()
    row = open_object(link, "a", OpenStatus.FAILED, code=Code.TARGET_REFUSED.value)
    looks = Rounds(clock.now())

    def look(seconds: float) -> list[str]:
        looks.at(seconds, observe(clock.now()))
        return [kind for kind in open_kinds() if kind.startswith("rule-")]

    look(0)
    assert look(70) == ["rule-failed"]
    Link.objects.update(health=Health.DOWN.value, health_since=clock.now())
    assert look(80) == look(90) == ["rule-failed"]
    Link.objects.update(health=Health.UP.value)
    row.delete()
    link.counts.all().delete()
    look(100)
    assert look(110) == []
    assert Alert.objects.get(kind="rule-failed").closing.startswith("Up to date: s3://dst-logs/in: It has all")


def test_alerts_are_seen_by_who_may_read_the_rule(lm: Deployment, api: Api) -> None:
    in_trouble()
    looks = Rounds(clock.now())
    for seconds in (0, 70):
        looks.at(seconds, observe(clock.now()))
    assert {one["kind"] for one in api.call("GET", ALERTS)[1]["results"]} >= {"rule-blocked", "rule-failed"}
    user = person("rita")
    rita = Api(user)
    give(user, "Sees", allow(["fs:ReadRepository"], "arn:lakefs:fs:::repository/another"))
    assert rita.call("GET", ALERTS)[1]["results"] == []
    give(user, "Reads", allow(["fs:ReadReplicationRule"], "arn:lakefs:fs:::replication/orders"))
    told = rita.call("GET", ALERTS)[1]["results"]
    assert {one["kind"] for one in told} == {"rule-blocked", "rule-failed"} and told[0]["labels"] == {"team": "sales"}


def give(user: Any, name: str, statement: Any) -> None:
    policy = rbac.policy_put(actor="system:tests", document=policy_document(name, statement))
    rbac.policy_attach(actor="system:tests", policy=policy, user=user)
