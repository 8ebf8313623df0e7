"""Places of many stretches: a look through all of them takes its time, in turns; stretches of few keys are joined, and
runs of keys are read side by side.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.errors import Denied, Unreachable
from core.mirroring.states import State
from core.replicating.explain import Told
from db import clock
from jobs.models import Duty
from replication.engine import piece
from replication.engine.piece import spans_of
from replication.models import Link, Rule, Shard
from replication.status.rules import rule_reading
from replication.transitions import ledger, shards
from tests.replication.world import AWAY, FAR, World, refusing, silent

pytestmark = pytest.mark.django_db
EVERY = 300


@pytest.fixture
def large(w: World, monkeypatch: pytest.MonkeyPatch) -> Rule:
    """A rule of 24 objects in 8 stretches, of which 3 are many, compared for the first time."""
    monkeypatch.setattr(shards, "SPLIT_AT", 3)
    monkeypatch.setattr(shards, "PARTS", 3)
    monkeypatch.setattr(shards, "JOIN_BELOW", 0)
    for number in range(24):
        w.put(f"k{number:02}")
    rule = w.rule(scan_every=EVERY)
    w.work(3)
    rule.refresh_from_db()
    assert rule.shards.count() >= 8 and rule.cycle == 1 and not rule.spread
    return rule


def looked_at(w: World, rule: Rule) -> int:
    """How many stretches a round looks through."""
    now = clock.now()
    w.scan()
    rule.refresh_from_db()
    return rule.shards.filter(ended_at__gte=now).count()


def test_a_look_through_a_large_place_takes_its_turns(w: World, large: Rule) -> None:
    number = large.shards.count()
    w.later(EVERY + 1)
    assert looked_at(w, large) == 0
    w.later(2 * EVERY)
    turns = []
    for _ in range(3):
        turns.append(looked_at(w, large))
        assert large.cycle == (2 if len(turns) == 3 else 1)
        w.later(EVERY + 1)
    assert sum(turns) == number and max(turns) - min(turns) <= 1
    assert large.full_began_at is not None and large.full_ended_at is not None
    assert (large.full_ended_at - large.full_began_at).total_seconds() >= 2 * EVERY
    one = told(large)
    assert one.state is State.UP_TO_DATE and "whole comparison takes 10 min here" in str(one.sentence)


def told(rule: Rule) -> Told:
    """What is said of it, whose duties are on time."""
    Duty.objects.update(due_at=clock.now())
    return rule_reading(rule, clock.now()).told


def spread(w: World, rule: Rule) -> None:
    """The next look has begun, and takes its time."""
    w.later(3 * EVERY + 1)
    w.scan()
    rule.refresh_from_db()
    assert rule.spread and rule.cycle_began_at is not None


def test_who_wants_a_look_now_does_not_wait_for_turns(w: World, large: Rule) -> None:
    spread(w, large)
    w.put("k00+")
    Rule.objects.update(scan_wanted=True)
    assert looked_at(w, large) == large.shards.count()
    assert large.cycle == 2 and not large.scan_wanted
    w.copy()
    assert w.there() == w.home.buckets["src"]


def test_what_could_not_be_read_is_looked_at_before_its_turn_and_then_all_is_compared(w: World, large: Rule) -> None:
    w.away.before = refusing(Denied("403 to list"), "LIST")
    spread(w, large)
    assert large.shards.filter(dirty=True).count() == 2 and w.link().uncompared
    w.away.before = lambda method, bucket, key: None
    for _ in range(3):
        w.later(EVERY + 1)
        w.scan()
        assert not large.shards.filter(dirty=True).exists()
    large.refresh_from_db()
    link = w.link()
    assert large.cycle == 2 and link.compared_at == large.full_ended_at
    assert told(large).state is State.UP_TO_DATE


def test_a_link_that_was_never_compared_is_not_called_so_for_what_was_looked_at_again(w: World, large: Rule) -> None:
    Link.objects.update(compared_at=None)
    spread(w, large)
    Link.objects.update(uncompared=True)
    for _ in range(3):
        w.later(EVERY + 1)
        w.scan()
    large.refresh_from_db()
    assert large.cycle == 2 and w.link().compared_at is None


def test_a_target_that_comes_back_has_what_is_marked_looked_at_and_not_everything(w: World, large: Rule) -> None:
    spread(w, large)
    first = large.shards.order_by("low").first()
    Shard.objects.filter(pk=first.pk).update(dirty=True, due_at=clock.now() + timedelta(hours=5))
    Link.objects.update(health="down", probe_at=clock.now())
    w.copy()
    assert w.link().health == "up"
    large.refresh_from_db()
    assert not large.scan_wanted and large.shards.get(dirty=True).due_at <= clock.now()


def test_a_full_ledger_of_a_large_place_is_empty_in_the_end(
    w: World, large: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "MOST_OPEN", 4)
    for number in range(24):
        w.put(f"k{number:02}", b"changed")
    w.later(3 * EVERY + 1)
    for _ in range(30):
        w.scan()
        assert len(w.rows()) <= 4
        compared = Rule.objects.get().cycle > large.cycle
        if compared and w.there() != w.home.buckets["src"]:
            assert told(Rule.objects.get()).state is not State.UP_TO_DATE
        w.copy()
        w.later(EVERY // 3)
    assert w.there() == w.home.buckets["src"]
    assert not w.link().overflowed and not large.shards.filter(dirty=True).exists()
    w.check_counts()


# --- joining ----------------------------------------------------------------------------------------------------------


def test_stretches_of_few_keys_are_joined_and_still_cover_all(
    w: World, large: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "JOIN_BELOW", 3)
    monkeypatch.setattr(shards, "JOINED_AT_MOST", 4)
    number = large.shards.count()
    for gone in [f"k{n:02}" for n in range(24) if n % 3]:
        del w.home.buckets["src"][gone]
    Rule.objects.update(scan_wanted=True)
    w.scan()
    Rule.objects.update(scan_wanted=True)
    w.put("k05+")
    w.scan()
    rows = list(large.shards.order_by("low"))
    assert 1 < len(rows) < number
    assert bytes(rows[0].low) == b"" and rows[-1].high is None
    assert [bytes(row.high) for row in rows[:-1]] == [bytes(row.low) for row in rows[1:]]
    w.copy()
    assert w.home.buckets["src"].items() <= w.there().items()
    large.refresh_from_db()
    assert large.full_objects == len(w.home.buckets["src"])


def test_a_stretch_that_is_being_looked_through_or_never_was_is_not_joined(
    w: World, large: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "JOIN_BELOW", 100)
    monkeypatch.setattr(shards, "JOINED_AT_MOST", 100)
    large.shards.update(after=b"k00")
    assert shards.join(large.pk) == 0
    large.shards.update(after=None, ended_at=None)
    assert shards.join(large.pk) == 0
    large.shards.update(ended_at=clock.now())
    one = large.shards.order_by("low").last()
    Shard.objects.filter(pk=one.pk).update(dirty=True)
    assert shards.join(large.pk) > 0
    (left,) = large.shards.all()
    assert left.dirty and left.high is None and bytes(left.low) == b"" and left.objects_last == 24


# --- side by side -----------------------------------------------------------------------------------------------------


@pytest.fixture
def marked(w: World, monkeypatch: pytest.MonkeyPatch) -> Rule:
    """A rule of 30 objects that was compared, whose one stretch is marked."""
    monkeypatch.setattr(piece, "MARK_EVERY", 3)
    for number in range(30):
        w.put(f"k{number:02}")
    rule = w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    w.work(2)
    return rule


def test_marks_lie_in_order_and_spans_between_them_cover_the_stretch(w: World, marked: Rule) -> None:
    shard = marked.shards.get()
    assert len(shard.marks) >= 5 and shard.marks == sorted(set(shard.marks))
    spans = list(spans_of(shard))
    assert [span.low for span in spans] == ["", *shard.marks]
    assert [span.high for span in spans] == [*shard.marks, None]
    assert [span.last for span in spans] == [False] * len(shard.marks) + [True]
    shard.after = shard.marks[2].encode()
    assert next(spans_of(shard)).low == shard.marks[2]


def test_what_changes_between_marks_is_found_and_marks_stay_few(w: World, marked: Rule) -> None:
    number = len(marked.shards.get().marks)
    for _ in range(4):
        w.later(600)
        w.put("a")
        w.put("k11", b"changed")
        w.put("k20+")
        w.put("z")
        w.home.buckets["src"].pop("k03", None)
        w.work(1)
        shard = marked.shards.get()
        assert shard.marks == sorted(set(shard.marks)) and len(shard.marks) <= number + 2
    for region, bucket in ((AWAY, "out"), (FAR, "two")):
        assert w.home.buckets["src"].items() <= w.there(region, bucket).items()
    marked.refresh_from_db()
    assert marked.full_objects == len(w.home.buckets["src"]) and marked.shards.get().objects_last == marked.full_objects


def test_a_target_that_does_not_answer_is_left_out_after_a_while(w: World, marked: Rule) -> None:
    w.later(600)
    w.away.before = silent("LIST")
    before = w.away.asked["LIST"]
    w.put("k05", b"changed")
    w.scan()
    assert w.names(2) == ["k05"] and w.names(1) == []
    assert w.link().listing_error and not w.link(2).listing_error and marked.shards.get().dirty
    assert w.away.asked["LIST"] - before < 40


def test_where_the_source_stops_answering_all_before_is_written_down(w: World, marked: Rule) -> None:
    w.later(600)
    w.put("k02", b"changed")
    w.put("k29", b"changed")
    real = w.home.page

    def page(prefix_uri: str, after: str = "", *, dated: bool = False) -> object:
        if after >= "k20":
            raise Unreachable("?")
        return real(prefix_uri, after, dated=dated)

    w.home.page = page  # type: ignore[method-assign,assignment]
    w.scan()
    assert w.names() == ["k02"] and Rule.objects.get().error
    shard = marked.shards.get()
    assert shard.after is not None and b"k02" < bytes(shard.after) <= b"k20"
    w.home.page = real  # type: ignore[method-assign]
    w.scan()
    assert w.names() == ["k02", "k29"] and Rule.objects.get().error == ""
    marked.refresh_from_db()
    assert marked.full_objects == 30
