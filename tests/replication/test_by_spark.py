"""What is large is copied by tasks of Spark: by the same code, and under the same rules."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from core.errors import Denied, Unreachable
from core.replicating.health import REFUSALS
from core.replicating.retries import LONGEST_WRITES
from core.store_access import EXECUTORS_KEY
from db import clock
from deployment import config
from deployment.wiring import replication_spark
from jobs.models import Duty, Worker
from replication.models import Link, Rule
from replication.transitions.duties import LINK
from spark_jobs.replicate import job
from spark_jobs.replicate.settings import CopySettings
from tests.mirrors.harness import Deployment
from tests.replication.soak import soaking
from tests.replication.spark_here import QUEUE, SparkHere, spark_here
from tests.replication.test_both_ways import PAIR, RING, Ends, written_anew
from tests.replication.version_soak import VersionSoak
from tests.replication.version_world import version_world
from tests.replication.world import AWAY, HOME, World, refusing, silent

pytestmark = pytest.mark.django_db


@pytest.fixture
def spark(w: World) -> Iterator[SparkHere]:
    with spark_here(w) as made:
        yield made


def a_rule(w: World, objects: int = 40, **more: Any) -> Rule:
    """With so many objects that its target lacks, which are noted."""
    for number in range(objects):
        w.put(f"k{number:03}", b"%d" % number)
    rule = w.rule(**more)
    w.scan()
    return rule


def queue() -> str:
    return Duty.objects.get(kind=LINK).queue


def test_what_is_large_is_copied_by_tasks_of_spark(w: World, spark: SparkHere) -> None:
    a_rule(w)
    assert queue() == HOME
    w.copy()
    assert w.there() == w.home.buckets["src"], "the first round is the worker's"
    for number in range(40, 80):
        w.put(f"k{number:03}", b"%d" % number)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    w.later(400)
    w.scan()
    w.copy()
    assert w.there() == w.home.buckets["src"]
    assert len(spark.jobs) == 1 and len(spark.jobs[0]) == 8 and spark.objects == 40
    link = w.link()
    assert (link.sent_objects, link.writes_until, w.rows()) == (80, None, [])
    assert queue() == HOME, "nothing is left to copy"
    w.check_counts()


@pytest.mark.parametrize(("small_objects", "small_bytes", "by_spark"), [(10, 10**6, 0), (9, 10**6, 10), (10, 9, 10)])
def test_what_is_more_than_small_is_spark_s(
    w: World, spark: SparkHere, small_objects: int, small_bytes: int, by_spark: int
) -> None:
    a_rule(w, 10)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    told = config.current()
    other = replace(told, replication=replace(told.replication, small_objects=small_objects, small_bytes=small_bytes))
    with mock.patch("deployment.config.current", lambda: other):
        w.copy()
    assert spark.objects == by_spark and w.there() == w.home.buckets["src"]


def test_the_worker_gives_a_link_that_has_much_left_to_those_that_have_spark(
    w: World, spark: SparkHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replication.engine.link.ROUND_SECONDS", 0.0)
    monkeypatch.setattr("replication.engine.round.Round.over", property(lambda self: True))
    a_rule(w)
    w.copy()
    assert queue() == QUEUE and w.there() == {}
    Worker.objects.update(spark_trouble="it can't be reached")
    Duty.objects.filter(kind=LINK).update(queue=HOME)
    w.copy()
    assert queue() == HOME


def test_where_spark_does_not_answer_the_worker_copies(w: World, spark: SparkHere) -> None:
    a_rule(w)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    spark.away = True
    w.copy()
    assert w.there() == w.home.buckets["src"] and not spark.jobs
    spark.away = False
    assert not replication_spark.answers(), "it is left alone for a minute"


def test_5_spark_is_killed_in_a_slice_and_at_most_that_is_looked_at_again(w: World, spark: SparkHere) -> None:
    """Nothing that was written is written again; what the tasks wrote last is waited for."""
    a_rule(w)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    spark.lost = 3
    assert "Spark does not answer" in w.copy()[0]
    link = w.link()
    assert len(w.there()) == 15 and len(w.rows()) == 40 and link.sent_objects == 0
    assert link.writes_until is not None
    assert "waiting for the last writes" in w.copy()[0]
    w.later(106)
    w.copy()
    assert w.there() == w.home.buckets["src"] and w.rows() == []
    written = [key for _, key, _ in w.away.written]
    assert sorted(written) == sorted(set(written)), "each was written once"
    w.check_counts()


def test_5_a_task_that_was_given_to_somebody_before_writes_nothing(
    w: World, spark: SparkHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_rule(w)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    monkeypatch.setattr(job, "_is_repeated", lambda: True)
    assert "another executor" in w.copy()[0]
    assert w.there() == {} and w.link().writes_until is not None
    monkeypatch.setattr(job, "_is_repeated", lambda: False)
    w.later(106)
    w.copy()
    assert w.there() == w.home.buckets["src"]


def test_executors_that_can_t_open_what_signs_copies_copy_nothing(
    w: World, spark: SparkHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_rule(w)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    monkeypatch.delenv(EXECUTORS_KEY)
    assert EXECUTORS_KEY in w.copy()[0]
    assert w.there() == {}
    w.later(106)
    w.copy()
    assert w.there() == w.home.buckets["src"], "by the worker"


def test_a_store_that_refuses_everything_blocks_the_link(w: World, spark: SparkHere) -> None:
    a_rule(w, 400)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    w.away.before = refusing(Denied("403 AccessDenied"), "PUT")
    w.copy()
    link = w.link()
    assert (link.health, link.health_code) == ("blocked", "DstPutObjectNotPermitted")
    assert "AWS_" in link.health_message, "it may be for want of keys there"
    assert w.away.asked["PUT"] < 8 * (REFUSALS + 20)
    assert not [row for row in w.rows() if row.attempts]
    w.away.before = lambda *_: None
    w.later(61)
    w.copy()
    w.copy()
    assert w.there() == w.home.buckets["src"] and w.link().health == "up"
    w.check_counts()


def test_a_store_that_does_not_answer_makes_it_down(w: World, spark: SparkHere) -> None:
    a_rule(w)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    w.away.before = silent("PUT")
    w.copy()
    assert w.link().health == "down"
    w.check_counts()


def test_a_target_without_its_pin_gets_nothing_from_tasks(w: World, spark: SparkHere) -> None:
    a_rule(w)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    pins = [key for key in w.away.buckets["out"] if key.endswith("target.json")]

    def loses_it(number: int) -> None:
        for key in pins:
            w.away.buckets["out"].pop(key, None)

    spark.fails = loses_it
    assert "stale" in w.copy()[0]
    assert w.there() == {} and w.link().stale_since is not None
    assert [key for key in w.away.buckets["out"] if key.startswith("_lakemirror/")] == []


def test_34_a_pause_ends_the_slice(w: World, spark: SparkHere, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replication.engine.round.TOLD_SECONDS", 0.0)
    a_rule(w)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    told: list[bytes] = []

    def pauses(number: int) -> None:
        if number == 3:
            Link.objects.update(paused=True)
        told.extend(data for key, data in w.away.buckets["out"].items() if key.endswith("control.json"))

    spark.fails = pauses
    w.copy()
    assert told and b'"ends": true' in told[-1]
    assert w.link().writes_until is None and len(w.rows()) + len(w.there()) == 40
    w.check_counts()


def test_34_limits_that_are_changed_are_told_to_the_tasks_at_work(
    w: World, spark: SparkHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replication.engine.round.TOLD_SECONDS", 0.0)
    a_rule(w)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    Link.objects.update(bytes_per_second=80_000_000)
    told: list[bytes] = []

    def changes(number: int) -> None:
        if number == 0:
            Link.objects.update(bytes_per_second=16_000_000)
        told[:] = [data for key, data in w.away.buckets["out"].items() if key.endswith("control.json")]

    spark.fails = changes
    w.copy()
    assert [one.limits.bytes_per_second for one in spark.settings] == [10_000_000]
    assert b'"bytes_per_second": 16000000.0' in told[0], "one task is left, and has all of it"


def test_a_slice_that_is_to_stop_is_waited_for_to_its_end(
    w: World, spark: SparkHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is lost then may not have told its tasks."""
    monkeypatch.setattr("replication.engine.round.TOLD_SECONDS", 0.0)
    a_rule(w)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    began = clock.now()

    def stops(number: int) -> None:
        if number == 1:
            Link.objects.update(workers=4)
        if number == 5:
            raise Unreachable("the worker is lost")

    spark.fails = stops
    w.copy()
    until = w.link().writes_until
    assert until is not None and until >= began + timedelta(seconds=LONGEST_WRITES)


def test_deletions_are_the_worker_s(w: World, spark: SparkHere) -> None:
    rule = a_rule(w, markers=True)
    w.copy()
    w.later(400)
    w.scan()
    w.home.buckets["src"].pop("k000")
    w.put("k001", b"another")
    w.later(400)
    w.scan()
    w.later(70)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    w.copy()
    assert spark.objects == 1, "the copy alone"
    assert w.there() == w.home.buckets["src"]
    assert Rule.objects.get(pk=rule.pk).links.get().deleted_objects == 1


def test_all_versions_are_copied_by_tasks_in_their_order(lm: Deployment) -> None:
    with version_world(lm) as w, spark_here(w) as spark:
        for number in range(3):
            for key in "abcdefgh":
                w.home.add("src", key, b"%s %d" % (key.encode(), number), tags={"t": f"{number}"})
        w.away.drops_tags = True
        w.rule(versions="all", metadata="all")
        w.scan()
        Duty.objects.filter(kind=LINK).update(queue=QUEUE)
        w.copy()
        assert spark.objects == 8 and w.rows() == []
        assert [kept.data for kept in w.away.chains["out"]["c"]] == [b"c 0", b"c 1", b"c 2"]
        assert [kept.tags for kept in w.away.chains["out"]["c"]] == [{"t": "0"}, {"t": "1"}, {"t": "2"}]


def test_of_two_ways_the_newer_object_stays(w: World, spark: SparkHere) -> None:
    ends = Ends(w, PAIR)
    Duty.objects.filter(kind=LINK).update(queue=QUEUE)
    ends.put(HOME, "a", "older")
    w.later(10)
    ends.put(AWAY, "a", "newer")
    ends.put(HOME, "b", "alone")
    assert ends.check_alike() == {"a": "newer", "b": "alone"}
    assert spark.objects


@pytest.mark.parametrize("seed", range(int(os.environ.get("LAKEMIRROR_RULE_SEEDS", "2"))))
@pytest.mark.parametrize("markers", [False, True])
def test_in_the_end_the_targets_have_what_the_source_has(w: World, seed: int, markers: bool) -> None:
    """The lives of rules, where every round is Spark's."""
    with spark_here(w, always=True) as spark, soaking(w, 1000 + seed, markers=markers) as life:
        assert life.live(40) == []
        assert spark.jobs


@pytest.mark.parametrize("seed", range(int(os.environ.get("LAKEMIRROR_RULE_SEEDS", "1"))))
def test_in_the_end_the_targets_have_all_versions(lm: Deployment, seed: int) -> None:
    with version_world(lm) as w, spark_here(w, always=True) as spark, soaking(w, 1000 + seed, VersionSoak) as life:
        assert life.live(25) == []
        assert spark.jobs


def test_tasks_ask_the_places_that_lead_to_the_source_of_a_ring(w: World) -> None:
    ends = Ends(w, RING)
    with spark_here(w, always=True) as spark:
        written_anew(w, ends)
        assert ends.check_alike() == {"a": "x"}
    assert {type(one).__name__ for one in spark.settings} == {"LookSettings", "CopySettings"}
    others = {place.region for one in spark.settings if isinstance(one, CopySettings) for place in one.others}
    assert HOME in others
