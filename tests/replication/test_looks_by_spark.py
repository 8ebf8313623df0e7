"""Large places are looked through by tasks of Spark; what they saw counts once, whatever becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.errors import Denied
from core.store_access import EXECUTORS_KEY
from db import clock
from jobs.models import Duty
from replication.models import Pass, Rule
from replication.transitions import passes, shards
from replication.transitions.duties import PASS, SCAN
from tests.replication.spark_here import QUEUE, SparkHere, spark_here
from tests.replication.test_passes import dry_run, rows_of, through
from tests.replication.world import AWAY, FAR, HOME, World, refusing

pytestmark = pytest.mark.django_db

CHANGED = [f"k{number:02}" for number in range(0, 24, 2)]


@pytest.fixture
def large(w: World, monkeypatch: pytest.MonkeyPatch) -> Rule:
    """A rule of 24 objects in 8 stretches, of which 3 are many, compared for the first time; somebody wants another
    look."""
    monkeypatch.setattr(shards, "SPLIT_AT", 3)
    monkeypatch.setattr(shards, "PARTS", 3)
    monkeypatch.setattr(shards, "JOIN_BELOW", 0)
    for number in range(24):
        w.put(f"k{number:02}")
    rule = w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    w.work(3)
    rule.refresh_from_db()
    assert rule.shards.count() >= 8 and rule.cycle == 1
    w.later(400)
    for key in CHANGED:
        w.put(key, b"another")
    del w.far.buckets["two"]["k05"]
    Rule.objects.update(scan_wanted=True)
    return rule


@pytest.fixture
def spark(w: World, large: Rule) -> Iterator[SparkHere]:
    with spark_here(w) as made:
        Duty.objects.filter(kind=SCAN).update(queue=QUEUE)
        yield made


def queue() -> str:
    return Duty.objects.get(kind=SCAN).queue


def test_a_large_place_is_looked_through_by_tasks(w: World, large: Rule, spark: SparkHere) -> None:
    w.scan()
    assert len(spark.jobs) == 1 and spark.objects >= 8
    large.refresh_from_db()
    assert (large.cycle, large.full_objects, large.full_bytes) == (2, 24, 12 * 7 + 12 * 4)
    assert w.names(1) == CHANGED and w.names(2) == sorted([*CHANGED, "k05"])
    assert not any(row.absent for row in w.rows(1)) and [row.name for row in w.rows(2) if row.absent] == ["k05"]
    assert queue() == HOME, "nothing is due any more"
    w.check_counts()
    w.copy()
    assert w.there() == w.home.buckets["src"] == w.there(FAR, "two")


def test_the_worker_gives_up_a_look_of_which_much_is_due(
    w: World, large: Rule, spark: SparkHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    Duty.objects.filter(kind=SCAN).update(queue=HOME)
    monkeypatch.setattr("replication.engine.piece.Piece.carry", lambda piece: None)
    w.scan()
    assert not spark.jobs and queue() == QUEUE


def test_5_spark_is_lost_in_a_look_and_nothing_counts_twice(w: World, large: Rule, spark: SparkHere) -> None:
    def lost(number: int) -> None:
        if number == 4:
            spark.away = True
            raise Denied("the job was lost")

    spark.fails = lost
    w.scan()
    large.refresh_from_db()
    assert 0 < large.cycle_objects < 24 and not large.error, "its source is not at fault"
    w.scan()
    large.refresh_from_db()
    assert (large.cycle, large.full_objects) == (2, 24)
    assert w.names(1) == CHANGED and w.names(2) == sorted([*CHANGED, "k05"])
    w.check_counts()


def test_a_source_that_refuses_ends_the_look(w: World, large: Rule, spark: SparkHere) -> None:
    w.home.before = refusing(Denied("403 AccessDenied"), "LIST")
    w.scan()
    large.refresh_from_db()
    assert "403 AccessDenied" in large.error and large.cycle == 1
    w.home.before = lambda *_: None
    w.scan()
    large.refresh_from_db()
    assert not large.error and large.cycle == 2


def test_a_target_that_can_t_be_listed_is_not_compared(w: World, large: Rule, spark: SparkHere) -> None:
    before = w.link(2).compared_at
    w.far.before = refusing(Denied("403 AccessDenied"), "LIST")
    w.scan()
    assert w.names(1) == CHANGED and w.names(2) == []
    one, two = w.link(1), w.link(2)
    assert one.compared_at != before and two.compared_at == before and "403 AccessDenied" in two.listing_error
    assert not large.shards.filter(dirty=False).exists()


def test_a_rule_that_is_paused_ends_its_job(w: World, large: Rule, spark: SparkHere) -> None:
    def pauses(number: int) -> None:
        if number == 2:
            Rule.objects.update(paused=True)

    spark.fails = pauses
    w.scan()
    large.refresh_from_db()
    assert large.cycle == 1 and 0 < large.cycle_objects < 24 and not large.error


def test_executors_that_can_t_open_what_signs_copies_look_at_nothing(
    w: World, large: Rule, spark: SparkHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(EXECUTORS_KEY)
    w.scan()
    large.refresh_from_db()
    assert large.cycle_objects == 0 and not large.error
    w.scan()
    large.refresh_from_db()
    assert large.cycle == 2, "the worker did it"


def test_a_stretch_that_has_grown_is_cut(w: World, large: Rule, spark: SparkHere) -> None:
    for number in range(12):
        w.put(f"k00{number:02}")
    before = large.shards.count()
    w.scan()
    w.scan()
    large.refresh_from_db()
    assert large.cycle == 2 and large.full_objects == 36 and large.shards.count() > before
    assert len(w.names(1)) == 24
    w.check_counts()


def test_rules_that_follow_deletions_are_looked_through_by_the_worker(w: World, large: Rule, spark: SparkHere) -> None:
    Rule.objects.update(markers=True)
    w.scan()
    assert not spark.jobs and queue() == HOME


# --- passes -----------------------------------------------------------------------------------------------------------

EXPECTED = {
    "1": {"overwrite": [12, 84], "equal": [12, 48]},
    "2": {"overwrite": [12, 84], "equal": [11, 44], "copy": [1, 4]},
}


def resync(w: World, rule: Rule, **more: Any) -> Pass:
    """Of the second link."""
    values = {"kind": "resync", "region": HOME, "who": "olga", "began_at": clock.now()}
    return by_spark(passes.begin(Pass(rule=rule, link=w.link(2), **values | more)))


def by_spark(made: Pass) -> Pass:
    Duty.objects.filter(kind=PASS).update(queue=QUEUE)
    return made


def test_a_pass_through_a_large_place_is_read_by_tasks(w: World, large: Rule, spark: SparkHere) -> None:
    made = by_spark(dry_run(w))
    puts = w.away.asked["PUT"], w.far.asked["PUT"]
    w.look()
    made.refresh_from_db()
    assert len(spark.jobs) == 1 and puts == (w.away.asked["PUT"], w.far.asked["PUT"])
    assert made.actions == EXPECTED and made.state == "completed" and made.looked_at == 48
    assert sorted(key for key, _, _ in rows_of(made)) == sorted([*CHANGED, *CHANGED, "k05"])


def test_5_spark_is_lost_in_a_pass_and_nothing_counts_twice(w: World, large: Rule, spark: SparkHere) -> None:
    made = by_spark(dry_run(w))

    def lost(number: int) -> None:
        if number == 4:
            spark.away = True
            raise Denied("the job was lost")

    spark.fails = lost
    w.look()
    made.refresh_from_db()
    assert 0 < made.looked_at < 48 and made.ended_at is None
    w.look()
    made.refresh_from_db()
    assert made.actions == EXPECTED and made.state == "completed" and made.looked_at == 48


def test_a_resync_gives_what_lacks_to_its_link(w: World, large: Rule, spark: SparkHere) -> None:
    made = resync(w, large)
    w.look()
    assert spark.jobs and w.names(2) == sorted([*CHANGED, "k05"]) and w.names(1) == []
    made = through(w, made)
    assert (made.state, made.copied, made.actions["2"]) == ("completed", 13, EXPECTED["2"])


def test_a_resync_reads_no_further_than_its_link_has_room_for(
    w: World, large: Rule, spark: SparkHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("reading", "spark_reading", "duty"):
        monkeypatch.setattr(f"replication.engine.passes.{name}.AHEAD", 4)
    made = resync(w, large, what="all")
    w.look()
    made.refresh_from_db()
    assert made.ended_at is None and 4 <= len(w.names(2)) < 12
    made = through(w, made, 20)
    assert (made.state, made.copied) == ("completed", 24)
    assert w.there(FAR, "two") == w.home.buckets["src"]


def test_a_target_that_refuses_is_told_by_the_pass(w: World, large: Rule, spark: SparkHere) -> None:
    made = resync(w, large)
    w.far.before = refusing(Denied("403 AccessDenied"), "LIST")
    w.look()
    made.refresh_from_db()
    assert "403 AccessDenied" in made.message and made.ended_at is None
    w.far.before = lambda *_: None
    assert through(w, made).state == "completed"
