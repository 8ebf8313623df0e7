"""A mirror's repository with garbage-collection rules of its own is noticed, and told of where people look."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client

from core.errors import Denied, Unreachable
from core.mirroring.explain.gc_rules import both_of
from core.types import GcRules
from mirrors.models import Mirror
from mirrors.status.mirror import MirrorStatus, mirror_status
from rbac.models import User
from tests.mirrors.harness import NAMESPACE, Deployment

pytestmark = pytest.mark.django_db(transaction=True)

OURS, OTHERS = GcRules(21, {"main": 28}), GcRules(7)
SOURCE = "s3://src/lake"


@pytest.fixture
def mirror(lm: Deployment) -> Mirror:
    """A mirror whose rules nobody has looked at yet."""
    lm.lake.commit()
    lm.arrive()
    lm.us.gc[SOURCE] = lm.eu.gc[NAMESPACE] = OURS
    return Mirror.objects.get()


def minutes_pass() -> None:
    Mirror.objects.update(gc_rules_at=F("gc_rules_at") - timedelta(minutes=11))


def told(lm: Deployment) -> MirrorStatus:
    """What is said after another look at the rules."""
    minutes_pass()
    lm.work(1)
    return mirror_status(Mirror.objects.get())


def test_the_rules_that_came_along_from_the_source_are_none_of_its_own(lm: Deployment, mirror: Mirror) -> None:
    reading = told(lm)
    both = both_of(reading.mirror.gc_rules)
    assert both is not None and both.source.rules == both.mirror.rules == OURS
    assert (reading.own_rules, reading.unread_rules) == ("", "")
    del lm.eu.gc[NAMESPACE]
    assert told(lm).own_rules == "", "they have not arrived: nothing would be collected"


def test_rules_of_its_own_are_told_with_what_to_do(lm: Deployment, mirror: Mirror) -> None:
    lm.eu.gc[NAMESPACE] = OTHERS
    warning = told(lm).own_rules
    assert "of its own (7 days; those of lake: 21 days, main 28 days)" in warning
    assert f"a run over {NAMESPACE}" in warning and "save those of lake again" in warning
    del lm.us.gc[SOURCE]
    assert f"delete {NAMESPACE}/_lakefs/retention/gc/rules/config.json" in told(lm).own_rules
    lm.us.gc[SOURCE] = OTHERS
    assert told(lm).own_rules == ""


def test_rules_that_may_not_be_read_are_not_taken_for_none(lm: Deployment, mirror: Mirror) -> None:
    lm.eu.failing["gc_rules"] = Denied("may not", hint="Let it")
    reading = told(lm)
    assert "could not be read: may not" in reading.unread_rules and reading.own_rules == ""
    assert lm.head() == lm.lake.repository.branches["main"], "promoted all the same"


def test_a_lakefs_that_does_not_answer_leaves_what_was_known(lm: Deployment, mirror: Mirror) -> None:
    lm.eu.gc[NAMESPACE] = OTHERS
    known = told(lm).own_rules
    lm.eu.failing["gc_rules"] = Unreachable("down")
    assert known and told(lm).own_rules == known
    Mirror.objects.update(gc_rules=None)
    assert "could not be read: down" in told(lm).unread_rules


def test_they_are_read_once_in_ten_minutes(lm: Deployment, mirror: Mirror) -> None:
    lm.work(4)
    assert lm.eu.calls.count("gc_rules") == 1
    minutes_pass()
    lm.work(4)
    assert lm.eu.calls.count("gc_rules") == lm.us.calls.count("gc_rules") == 2


def test_the_mirrors_page_warns(lm: Deployment, mirror: Mirror, owner: User, client: Client) -> None:
    client.force_login(owner)
    lm.eu.gc[NAMESPACE] = OTHERS
    told(lm)
    page = client.get("/mirrors/lake-eu/").content.decode()
    assert "Garbage collection:" in page and "the repository lake-eu has garbage-collection rules of its own" in page
    lm.eu.gc[NAMESPACE] = OURS
    told(lm)
    assert "Garbage collection:" not in client.get("/mirrors/lake-eu/").content.decode()
