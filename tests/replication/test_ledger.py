"""The ledger while several work on it: what is noted anew is not taken for what was copied, and counts stay right."""

from __future__ import annotations

from datetime import timedelta
from unittest import mock

import pytest
from django.db.models import Q

from core.errors import Invalid
from core.mirroring.states import State
from db import clock
from jobs.lease import Lease
from rbac.models import User
from replication.engine import cycles
from replication.engine.looking import Lacks, Looker
from replication.models import Link, Rule, Shard, Touched
from replication.services.rules import rule_update
from replication.status.rules import rule_reading
from replication.transitions import ledger, shards, touching
from replication.transitions.ledger import Lack, Tried
from tests.replication.world import AWAY, FAR, HOME, World, refusing

pytestmark = pytest.mark.django_db


def note(w: World, *lacks: Lack, number: int = 1) -> list[bytes]:
    link = ledger.hold(w.link(number).pk)
    assert link is not None
    return ledger.note(link, lacks, clock.now())


def gone(w: World, *, etag: str = "", only: str = "") -> list[Tried]:
    """Those rows as they are now, as if they had been brought."""
    rows = [row for row in w.rows() if only in ("", row.name)]
    return [Tried(row.pk, row.claimed, etag or row.etag, None) for row in rows]


def settle(w: World, tried: list[Tried]) -> int:
    link = ledger.hold(w.link().pk)
    assert link is not None
    return ledger.settle(link, tried)


def test_what_is_noted_twice_is_one_row_as_old_as_the_first(w: World) -> None:
    w.rule()
    note(w, Lack(b"a", 1, "x"), Lack(b"b", 2, "y"))
    since = w.rows()[0].since
    w.later(50)
    note(w, Lack(b"a", 1, "x"), Lack(b"c", 4, "z"), Lack(b"c", 4, "z"))
    assert w.names() == ["a", "b", "c"] and w.rows()[0].since == since
    assert w.link().oldest_at == since
    assert w.link().counts.pending() == (3, 7)
    w.check_counts()


def test_an_object_that_changed_while_an_older_one_was_copied_stays_open(w: World) -> None:
    w.rule()
    note(w, Lack(b"a", 1, "x"), Lack(b"b", 1, "y"))
    tried = gone(w)
    note(w, Lack(b"a", 3, "newer"))
    assert settle(w, tried) == 1
    (row,) = w.rows()
    assert (row.name, row.size, row.etag, row.status) == ("a", 3, "newer", "pending")
    w.check_counts()


def test_an_object_that_was_copied_as_it_was_noted_meanwhile_is_done(w: World) -> None:
    w.rule()
    note(w, Lack(b"a", 1, "x"))
    tried = gone(w, etag="newer")
    note(w, Lack(b"a", 3, "newer"))
    assert settle(w, tried) == 1 and w.rows() == []
    w.check_counts()


def test_a_failure_of_what_has_changed_since_counts_for_nothing(w: World) -> None:
    w.rule()
    note(w, Lack(b"a", 1, "x"))
    (row,) = w.rows()
    becomes = {"status": "failed", "code": "TargetRefused", "attempts": 1}
    note(w, Lack(b"a", 1, "newer"))
    settle(w, [Tried(row.pk, row.claimed, "", becomes)])
    (row,) = w.rows()
    assert (row.status, row.attempts, row.code) == ("pending", 0, "")
    w.check_counts()


def test_retry_makes_what_it_names_due_as_if_never_tried(w: World) -> None:
    for key in ("a", "b", "c"):
        w.put(key)
    w.rule()
    w.away.before = refusing(Invalid("no"), "PUT")
    w.work(1)
    link = ledger.hold(w.link().pk)
    assert link is not None
    now = clock.now()
    assert ledger.retry(link, Q(key=b"a"), now) == 1
    assert w.names(status="pending") == ["a"] and w.names(status="failed") == ["b", "c"]
    w.check_counts()
    assert ledger.retry(link, Q(code="TargetRefused"), now) == 2
    assert {(row.attempts, row.next_try, row.code, row.detail) for row in w.rows()} == {(0, now, "", "")}
    assert link.oldest_at is not None
    w.check_counts()


def test_there_is_room_for_so_many_and_the_rest_is_given_back(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MOST_OPEN", 2)
    w.rule()
    assert note(w, Lack(b"a", 1, "x")) == []
    assert note(w, *(Lack(key, 1, "x") for key in (b"a", b"b", b"c", b"d"))) == [b"c", b"d"]
    assert w.link().overflowed
    assert note(w, Lack(b"a", 5, "changed")) == []
    w.check_counts()


def test_links_of_a_rule_keep_books_of_their_own(w: World) -> None:
    w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    note(w, Lack(b"a", 1, "x"))
    note(w, Lack(b"a", 1, "x"), number=2)
    settle(w, gone(w))
    assert w.rows() == [] and w.names(2) == ["a"]
    w.check_counts()


# --- stretches --------------------------------------------------------------------------------------------------------


def test_a_key_marks_the_stretch_that_it_lies_in(w: World) -> None:
    rule = w.rule()
    now = clock.now()
    shards.cut(rule.shards.get(), b"m", now)
    for key, low in ((b"a", b""), (b"m", b""), (b"m\x00", b"m"), (b"z", b"m")):
        Shard.objects.update(dirty=False, missed=False)
        shards.mark_dirty(rule.pk, [key])
        assert [bytes(shard.low) for shard in rule.shards.filter(dirty=True, missed=True)] == [low], key


def test_what_is_marked_while_a_look_goes_on_outlives_it(w: World) -> None:
    rule = w.rule()
    shard, now = rule.shards.get(), clock.now()
    shards.mark_dirty(rule.pk, [b"a"])
    shards.ended(shard, objects=0, size=0, began=now, now=now, due_at=now + timedelta(hours=1))
    assert rule.shards.get().dirty
    shards.ended(shard, objects=0, size=0, began=now, now=now, due_at=now + timedelta(hours=1))
    assert not rule.shards.get().dirty
    shards.mark_dirty(rule.pk, [b"a"])
    assert shards.look_at_dirty_ones(rule.pk, now) == 1
    assert rule.shards.get().due_at == now


# --- touched keys -----------------------------------------------------------------------------------------------------


def test_a_key_is_noted_once_for_each_rule_whose_place_holds_it(w: World) -> None:
    w.rule(uri="s3://src/p")
    w.rule((FAR, "s3://two"), name="all")
    w.rule((FAR, "s3://two/x"), name="elsewhere", uri="s3://other")
    w.rule((FAR, "s3://two/y"), name="going", deleting=True)
    keys = ("p/a", "b", "p/\ud800", "_lakemirror/x")
    assert touching.objects_changed(HOME, {("src", key) for key in keys}) == 3
    touching.objects_changed(HOME, {("src", "p/a")})
    rows = Touched.objects.order_by("rule__name", "key").values_list("rule__name", "key")
    assert [(name, bytes(key)) for name, key in rows] == [("all", b"b"), ("all", b"p/a"), ("r", b"a")]


def test_a_key_that_is_named_again_while_it_is_looked_at_is_looked_at_again(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    w.put("a", b"one")
    w.rule()
    w.work()
    touching.objects_changed(HOME, {("src", "a")})
    looked: list[list[str]] = []
    real = Looker.lacking_of

    def lacking_of(looker: Looker, keys: list[str], tried: set[int], beside: set[str]) -> Lacks:
        lacks = real(looker, keys, tried)
        looked.append(keys)
        if len(looked) == 1:
            w.put("a", b"two")
            w.later(1)
            touching.objects_changed(HOME, {("src", "a")})
        return lacks

    monkeypatch.setattr(Looker, "lacking_of", lacking_of)
    w.scan()
    assert looked == [["a"], ["a"]]
    w.copy()
    assert w.there() == {"a": b"two"} and not Touched.objects.exists()


def test_more_names_than_are_kept_mark_their_stretches(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(touching, "MOST_TOUCHED", 2)
    rule = w.rule()
    w.work()
    for key in ("a", "b", "c", "d"):
        touching.objects_changed(HOME, {("src", key)})
    assert Touched.objects.count() == 3
    assert rule.shards.get().dirty


def test_a_target_that_is_down_has_named_keys_noted_unseen(w: World) -> None:
    w.put("a")
    w.rule((AWAY, "s3://out"), (FAR, "s3://two"))
    w.work()
    Link.objects.filter(number=1).update(health="down", probe_at=clock.now() + timedelta(hours=1))
    w.put("b")
    touching.objects_changed(HOME, {("src", "a"), ("src", "b")})
    w.scan()
    assert w.names() == ["a", "b"] and w.names(2) == ["b"]
    w.check_counts()


def test_named_keys_of_a_paused_rule_wait(w: World) -> None:
    w.put("a")
    rule = w.rule()
    Rule.objects.filter(pk=rule.pk).update(paused=True)
    touching.objects_changed(HOME, {("src", "a")})
    w.work(1)
    assert Touched.objects.count() == 1


def test_a_rule_that_copies_more_since_a_comparison_began_is_not_up_to_date_when_that_ends(
    w: World, owner: User
) -> None:
    w.put("old")
    w.home.modified["src", "old"] -= timedelta(days=1)
    w.rule(existing=False)
    w.put("new")
    w.home.modified["src", "new"] += timedelta(seconds=5)
    w.work()
    assert list(w.there()) == ["new"] and state(w) is State.UP_TO_DATE
    Rule.objects.update(scan_wanted=True)
    end = cycles.end

    def edited_meanwhile(rule: Rule, lease: Lease) -> bool:
        if rule.cycle_began_at and not rule.existing:
            rule_update(actor=owner, name="r", changes={"existing": True})
        return end(rule, lease)

    with mock.patch.object(cycles, "end", edited_meanwhile):
        w.scan()
    assert Rule.objects.get().existing and state(w) is State.SYNCING
    w.work()
    assert sorted(w.there()) == ["new", "old"] and state(w) is State.UP_TO_DATE


def test_one_stretch_that_is_looked_through_says_nothing_of_a_rule_that_copies_more(w: World, owner: User) -> None:
    """In a large place, whose stretches take their time."""
    rule = w.rule(existing=False)
    w.work()
    rule_update(actor=owner, name="r", changes={"existing": True})
    ledger.all_noted(rule.pk)
    assert w.link().overflowed
    Rule.objects.update(scan_wanted=False)
    ledger.all_noted(rule.pk)
    assert w.link().overflowed
    Rule.objects.update(full_began_at=clock.now())
    ledger.all_noted(rule.pk)
    assert not w.link().overflowed


def state(w: World) -> State:
    """Of the only link."""
    return rule_reading(Rule.objects.get(), clock.now()).links[0].told.state
