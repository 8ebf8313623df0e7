"""What is said of rules and links is so: nothing is up to date that nobody has compared."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.mirroring.states import State
from db import clock
from jobs.models import Duty
from replication.models import Rule
from replication.status.rules import OVERDUE, RuleReading, rule_reading
from tests.replication.world import AWAY, FAR, World, silent

pytestmark = pytest.mark.django_db


def told(w: World) -> RuleReading:
    return rule_reading(Rule.objects.get(), clock.now())


def states(w: World) -> list[State]:
    return [link.told.state for link in told(w).links]


def test_a_target_that_was_down_while_all_was_compared_is_not_up_to_date_before_it_was(w: World) -> None:
    w.put("a")
    w.rule((AWAY, "s3://out"), (FAR, "s3://two"), scan_every=100)
    w.work()
    assert states(w) == [State.UP_TO_DATE] * 2
    w.far.before = silent()
    for _ in range(3):
        w.later(1)
        w.copy()
    w.later(101)
    w.scan()
    del w.far.buckets["two"]["a"]
    w.far.before = lambda *_: None
    w.later(60)
    link = w.link(2)
    assert link.health == "down"
    w.copy()
    link = w.link(2)
    assert (link.health, states(w)) == ("up", [State.UP_TO_DATE, State.UNKNOWN])
    assert told(w).told.state is State.UNKNOWN
    w.work()
    assert states(w) == [State.UP_TO_DATE] * 2
    assert w.there(FAR, "two") == {"a": b"data"}


def test_a_target_that_could_not_be_listed_is_compared_again(w: World) -> None:
    w.put("a")
    w.rule((AWAY, "s3://out"), (FAR, "s3://two"), scan_every=100)
    w.work()
    w.later(101)
    page, w.far.page = w.far.page, _away  # type: ignore[method-assign]
    w.scan()
    w.far.page = page  # type: ignore[method-assign]
    assert states(w)[0] is State.UP_TO_DATE
    assert states(w)[1] is State.UNKNOWN
    w.later(101)
    w.scan()
    assert states(w) == [State.UP_TO_DATE] * 2


def _away(*_: object, **__: object) -> None:
    silent()("GET", "", "")


def test_what_nobody_compares_any_more_is_not_up_to_date(w: World) -> None:
    w.put("a")
    w.rule()
    w.work()
    due = clock.now()
    Duty.objects.update(due_at=due, holder="", until=None)
    w.passed += OVERDUE - timedelta(seconds=1)
    assert told(w).told.state is State.UP_TO_DATE
    w.later(60)
    reading = told(w)
    assert (reading.told.state, reading.links[0].told.state) == (State.UNKNOWN, State.UNKNOWN)
    assert "no worker has taken that up for 5 min" in str(reading.told.sentence)
