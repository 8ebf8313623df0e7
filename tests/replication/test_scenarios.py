"""Situations of replication rules that no other module plays, by the numbers of docs/replication-tests.md."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from unittest import mock

import pytest

from adapters.s3.fast_store import FastObjectStore
from jobs.models import Duty
from replication.models import Link, Rule
from replication.transitions import touching
from tests.api import Api
from tests.exports.memory_s3 import Answer
from tests.fakes import EmptyRulePlace
from tests.mirrors.harness import Deployment
from tests.replication.world import AWAY, HOME, World, silent

pytestmark = pytest.mark.django_db
RULES = "/service/replication/v1/rules"


def told(*keys: str) -> None:
    touching.objects_changed(HOME, {("src", key) for key in keys})


# --- 10, 13: events ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [0, 1, 2, 3])
def test_13_put_put_delete_put_of_one_key_whatever_is_told_and_done_between(w: World, late: int) -> None:
    w.rule(markers=True, delete_percent=100, existing=True)
    w.put("other")
    w.work()
    moves: list[bytes | None] = [b"1", b"2", None, b"3"]
    for at, data in enumerate(moves):
        if data is None:
            del w.home.buckets["src"]["k"]
        else:
            w.put("k", data)
        if at != late:
            told("k")
            w.scan()
        if at >= late:
            w.copy()
    told("k", "k")
    w.work()
    assert w.there()["k"] == b"3" and w.rows() == []
    written = [data for _, key, data in w.away.written if key == "k"]
    assert written == sorted(written) and written[-1] == b"3", "nothing older comes back over something newer"


def test_10_an_event_that_is_lost_is_made_good_by_the_next_comparison(w: World) -> None:
    w.rule()
    w.work()
    w.put("told")
    w.put("lost")
    told("told", "told", "never was")
    w.work(1)
    assert set(w.there()) == {"told"}
    w.later(301)
    w.work(1)
    assert set(w.there()) == {"told", "lost"} and w.rows() == []
    assert [key for _, key, _ in w.away.written] == ["told", "lost"]


# --- 36: clocks -------------------------------------------------------------------------------------------------------


def plan(**more: Any) -> dict[str, Any]:
    source = {"region": HOME, "uri": "s3://src/in"}
    return {"name": "copies", "source": source, "targets": [{"region": AWAY, "uri": "s3://out/in"}]} | more


@pytest.mark.parametrize("conflict", ["source", "newest"])
def test_36_a_clock_that_is_off_is_told_before_a_rule_is_created(lm: Deployment, api: Api, conflict: str) -> None:
    off = mock.patch.object(EmptyRulePlace, "clock_ahead", lambda place: 600.0 if place.at == "s3://out/in" else 0.0)
    with off:
        found = api.call("POST", f"{RULES}/preflight", plan(conflict=conflict))[1]
    checks = {check["id"]: check for check in found["checks"]}
    assert found["ok"] and checks["source-clock"]["state"] == "ok"
    assert checks["target-1-clock"]["state"] == "warning" and "10 min ahead" in checks["target-1-clock"]["message"]
    assert ("would win over newer objects" in checks["target-1-clock"]["fix"]) is (conflict == "newest")


def test_36_the_time_is_that_of_the_stores_answer(w: World, api: Api) -> None:
    real = FastObjectStore.asked

    def dated(store: FastObjectStore, *asked: Any) -> Any:
        answer, at = real(store, *asked), datetime.now(UTC) - timedelta(hours=1)
        return Answer(answer.data, {**answer.headers, "date": format_datetime(at, usegmt=True)})

    def only_away(store: FastObjectStore, *asked: Any) -> Any:
        return dated(store, *asked) if store is w.away else real(store, *asked)  # type: ignore[comparison-overlap]

    with mock.patch.object(FastObjectStore, "asked", only_away):
        found = api.call("POST", f"{RULES}/preflight", plan())[1]
    checks = {one["id"]: one for one in found["checks"]}
    assert checks["target-1-clock"]["state"] == "failed" and "59 min behind" in checks["target-1-clock"]["message"]
    assert checks["source-clock"]["state"] == "unknown"


# --- 37: a target that is gone ----------------------------------------------------------------------------------------


def test_37_a_rule_whose_target_is_gone_is_deleted_at_once_and_its_duties_end(w: World, api: Api) -> None:
    for number in range(30):
        w.put(f"k{number:02}")
    w.rule()
    w.away.before = silent()
    w.work()
    began = time.monotonic()
    assert api.call("DELETE", f"{RULES}/r")[0] == 204
    assert time.monotonic() - began < 1
    for _ in range(4):
        w.later(200)
        w.work(1)
    assert not Rule.objects.exists() and not Link.objects.exists()
    assert not Duty.objects.filter(kind__startswith="replication").exists()
