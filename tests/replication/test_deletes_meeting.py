"""Deletions that a rule follows, where they meet something else: edits, late answers, what comes back, odd clocks."""

from __future__ import annotations

from datetime import timedelta
from time import sleep
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from django.db import transaction

from core.errors import Conflict, Denied, Unreachable
from core.replicating.outcomes import Kind, Outcome
from core.replicating.states import ApprovalState, Code
from db import clock
from jobs.models import Duty
from mirrors.models import Repository
from replication.engine import link as link_duty
from replication.engine import settling
from replication.engine.deletes.following import Following
from replication.engine.round import Round
from replication.models import Approval, Link, Rule, Shard
from replication.services import approvals
from replication.services.rules import rule_update
from replication.status.rules import rule_reading
from replication.transitions import deletions, freezing, shards
from tests.cast import person
from tests.replication.test_deletes import copied, follow, go, look
from tests.replication.world import AWAY, FAR, World, refusing

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(owner: Any) -> Any:
    return owner


def told(w: World) -> str:
    return rule_reading(Rule.objects.get(), clock.now()).told.word


def said(w: World) -> Any:
    """What is said of the link while workers are there."""
    Duty.objects.update(due_at=clock.now())
    return rule_reading(Rule.objects.get(), clock.now()).links[0].told


def quiet(*_: str) -> None:
    """The store answers."""


# --- edits ------------------------------------------------------------------------------------------------------------


def test_what_went_while_deletions_were_not_followed_stays(w: World, root: Any) -> None:
    copied(w, "a", "b", "c")
    rule_update(actor=root, name="r", changes={"markers": False})
    look(w)
    go(w, "b")
    look(w)
    rule_update(actor=root, name="r", changes={"markers": True})
    follow(w)
    follow(w)
    assert set(w.there()) == {"a", "b", "c"}
    go(w, "c")
    follow(w)
    assert set(w.there()) == {"a", "b"}, "what goes from now on is followed"


def test_a_look_that_goes_on_notes_no_deletions_that_nobody_wants_any_more(w: World, root: Any) -> None:
    copied(w, "a", "b", "c")
    go(w, "b")
    switched: list[int] = []

    def switch(rule: Rule, lacks: Any) -> set[int]:
        if not switched:
            switched.append(rule.pk)
            rule_update(actor=root, name="r", changes={"markers": False})
        return set()

    with mock.patch("replication.engine.looking.note", switch):
        look(w, 1)
    look(w)
    assert switched and w.rows() == [] and told(w) == "Up to date"


def test_a_round_that_goes_on_deletes_nothing_more_once_the_link_is_frozen(w: World) -> None:
    keys = [f"k{n:02}" for n in range(40)]
    copied(w, "a", *keys)
    go(w, *keys)
    look(w)
    w.later(61)
    w.away.before = lambda method, bucket, key: sleep(0.2 if method == "DELETE" else 0)
    settle = Round._settle

    def frozen(self: Round, ended: Any) -> None:
        settle(self, ended)
        freezing.freeze(self.link.rule_id, Code.SOURCE_EMPTY, "so", clock.now())

    with (
        mock.patch.object(Round, "_settle", frozen),
        mock.patch("replication.engine.round.TOLD_SECONDS", 0.0),
        mock.patch("replication.engine.round.SETTLE_SECONDS", 0.05),
    ):
        w.copy()
    assert len(w.there()) > 10


# --- what comes back while it is deleted ------------------------------------------------------------------------------


def test_what_is_back_when_it_is_to_be_deleted_is_compared(w: World) -> None:
    copied(w, "a", "b")
    go(w, "b")
    look(w)
    w.put("b", b"again")
    w.later(61)
    w.copy()
    assert w.there()["b"] == b"again" or told(w) != "Up to date"
    w.copy()
    assert w.there()["b"] == b"again"
    w.check_counts()


def test_what_is_back_while_its_deletion_is_under_way_is_compared_again(w: World) -> None:
    copied(w, "a", "b")
    go(w, "b")
    look(w)
    w.later(61)
    Link.objects.update(writes_until=clock.now() + timedelta(seconds=50))  # a round has asked, and deletes just now
    w.put("b", b"b")
    look(w)
    del w.away.buckets["out"]["b"]
    assert told(w) != "Up to date"
    Link.objects.update(writes_until=None)
    w.copy()
    assert w.there()["b"] == b"b" and w.rows() == []
    w.check_counts()


def test_what_is_noted_while_its_deletion_gets_no_answer_is_not_written_too_early(w: World) -> None:
    copied(w, "a", "b")
    go(w, "b")
    look(w)
    w.later(61)
    (row,) = w.rows()
    w.put("b", b"again")
    look(w)
    lost = Outcome(Kind.SILENT, Code.TARGET_DOWN, "nobody answers", uncertain=True)
    lease: Any = SimpleNamespace(transaction=transaction.atomic)
    settling.settle(w.link().pk, lease, [settling.Ended(row, lost)], settling.standing_of(w.link()))
    w.later(30)
    w.copy()
    assert w.there()["b"] == b"b", "a deletion may yet be carried out"
    w.later(100)
    w.copy()
    assert w.there()["b"] == b"again" and w.rows() == []
    w.check_counts()


def test_what_is_back_after_a_deletion_without_an_answer_is_looked_at(w: World) -> None:
    copied(w, "a", "b")
    go(w, "b")
    look(w)
    w.later(61)
    w.away.before = refusing(Unreachable("nobody answers"), "DELETE")
    w.copy()
    w.away.before = quiet
    (late,) = w.away.given_up
    w.put("b", b"b")
    late.do()
    w.later(100)
    w.copy()
    assert w.there().get("b") == b"b" or told(w) != "Up to date"
    w.copy()
    w.copy()
    assert w.there()["b"] == b"b" and w.rows() == []


def test_a_deletion_without_an_answer_is_waited_for_when_none_is_followed_any_more(w: World, root: Any) -> None:
    copied(w, "a", "b")
    go(w, "b")
    look(w)
    w.later(61)
    w.away.heeds_if_match = False
    w.away.before = refusing(Unreachable("nobody answers"), "DELETE")
    w.copy()
    w.away.before = quiet
    (late,) = w.away.given_up
    rule_update(actor=root, name="r", changes={"markers": False})
    w.put("b", b"again")
    look(w)
    w.later(5)
    w.copy()
    assert w.there()["b"] == b"b"
    late.do()
    w.later(100)
    w.copy()
    w.copy()
    assert w.there()["b"] == b"again" and w.rows() == []


# --- frozen links -----------------------------------------------------------------------------------------------------


def test_a_link_whose_source_is_confirmed_is_not_frozen_by_another_one_that_is_not(w: World, root: Any) -> None:
    w.home.created["src"] = "2026-01-01T00:00:00Z"
    for key in "abc":
        w.put(key)
    w.rule((AWAY, "s3://out"), (FAR, "s3://out"), markers=True, delete_percent=100)
    w.work()
    look(w)
    w.home.created["src"] = "2026-02-01T00:00:00Z"
    go(w, "b")
    look(w)
    assert Link.objects.exclude(frozen_since=None).count() == 2
    approvals.confirm_source(actor=root, name="r", number=1)
    follow(w)
    w.copy()
    assert w.link(1).frozen_since is None and w.link(2).frozen_since is not None
    assert set(w.there()) == {"a", "c"} and len(w.there(FAR)) == 3


def test_what_was_refused_before_the_source_changed_is_judged_anew_too(w: World) -> None:
    copied(w, "a", "b", "c")
    w.away.before = refusing(Denied("403"), "DELETE")
    go(w, "b")
    follow(w)
    w.away.before = quiet
    assert w.names(status="failed") == ["b"]
    freezing.freeze(w.link().rule_id, Code.SOURCE_EMPTY, "so", clock.now())
    w.check_counts()
    freezing.thaw(w.link())
    w.later(2 * 86400)
    w.copy()
    assert "b" in w.there(), "a whole look comes first"
    follow(w)
    assert set(w.there()) == {"a", "c"}
    w.check_counts()


# --- what is told -----------------------------------------------------------------------------------------------------


def test_a_target_whose_manifests_cannot_be_read_is_not_up_to_date(w: World) -> None:
    copied(w, "a", "b")
    assert told(w) == "Up to date"
    w.away.before = refusing(Denied("403"), "GET", keys="_lakemirror/rules")
    go(w, "b")
    follow(w)
    assert "b" in w.there() and told(w) == "Unknown"
    w.away.before = quiet
    follow(w)
    look(w)
    assert set(w.there()) == {"a"} and told(w) == "Up to date"


# --- room, clocks and busy loops --------------------------------------------------------------------------------------


def test_deletions_that_wait_leave_room_for_copies(w: World) -> None:
    keys = [f"k{n:02}" for n in range(20)]
    copied(w, *keys, delete_percent=10)
    with mock.patch("replication.transitions.ledger.MOST_OPEN", 8):
        go(w, *keys[:15])
        look(w)
        assert Approval.objects.get().more
        for n in range(4):
            w.put(f"n{n}")
        look(w)
        w.copy()
        assert {f"n{n}" for n in range(4)} <= set(w.there())


def test_deletions_for_which_there_was_no_room_are_looked_for_again(w: World) -> None:
    keys = [f"k{n:02}" for n in range(20)]
    copied(w, *keys, delete_percent=100)
    with mock.patch("replication.transitions.ledger.MOST_OPEN", 8):
        w.away.before = refusing(Denied("403"), "PUT", keys="n")
        for n in range(4):
            w.put(f"n{n}")
        w.work()
        go(w, *keys[:2])
        look(w)
        assert not Approval.objects.exists() and w.names(kind="delete") == []
        w.away.before = quiet
        w.later(4000)
        w.copy()
        assert {f"n{n}" for n in range(4)} <= set(w.there()) and "more than is noted" in str(said(w).sentence)
        w.scan()
        w.scan()
        w.later(61)
        w.copy()
        assert not set(keys[:2]) & set(w.there())
        look(w)
        assert said(w).word == "Up to date"


def test_a_clock_that_was_ahead_holds_up_no_deletion_for_ever(w: World) -> None:
    copied(w, "a", "b", "c")
    go(w, "b", "c")
    look(w)
    ahead = clock.now() + timedelta(days=400)
    w.link().open_objects.filter(key=b"b").update(next_try=ahead)
    w.link().open_objects.filter(key=b"c").update(next_try=ahead, not_before=ahead)
    follow(w)
    w.later(100)
    w.copy()
    assert set(w.there()) == {"a"}


def test_who_was_asked_by_a_clock_that_was_ahead_is_asked_anew(w: World) -> None:
    keys = [f"k{n:02}" for n in range(20)]
    copied(w, *keys, delete_percent=10)
    go(w, *keys[:9])
    look(w)
    Approval.objects.update(asked_at=clock.now() + timedelta(days=400), expires_at=clock.now() + timedelta(days=407))
    look(w)
    assert Approval.objects.get(state="waiting").asked_at <= clock.now()


@pytest.mark.parametrize("why", ["not yet", "not now"])
def test_nobody_runs_in_circles_for_what_may_not_be_done_yet(w: World, why: str) -> None:
    copied(w, "a", "b")
    go(w, "b")
    look(w)
    w.later(61)
    if why == "not yet":
        w.link().open_objects.update(not_before=clock.now() + timedelta(seconds=90), kind="copy", status="pending")
    else:
        Rule.objects.update(error="the source can't be listed")
    with mock.patch.object(link_duty, "DutyOutcome", wraps=link_duty.DutyOutcome) as outcome:
        w.copy()
    pause = outcome.call_args.args[1]
    assert pause is not None and pause >= 20


def test_a_link_that_begins_to_write_while_all_is_compared_for_the_first_time_is_up_to_date_then(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "SPLIT_AT", 3)
    monkeypatch.setattr(shards, "JOIN_BELOW", 0)
    for number in range(12):
        w.put(f"k{number:02}")
    w.rule(markers=True, delete_percent=100, pinned=False)
    pinned_beside(w, monkeypatch)
    w.work(3)
    assert told(w) == "Up to date"
    go(w, "k01")
    follow(w)
    assert len(w.there()) == 11


def pinned_beside(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What copies beside writes the link's pin once a look has begun with the first stretch."""
    enter = Following.enter

    def and_pinned(self: Following, shard: Shard) -> None:
        enter(self, shard)
        if (link := w.link()).pinned_at is None:
            w.pin(link)

    monkeypatch.setattr(Following, "enter", and_pinned)


@pytest.mark.parametrize("namespace", ["s3://out/lake", "s3://out"])
def test_nothing_is_deleted_where_a_repository_of_lakefs_lies_by_now(w: World, namespace: str, root: Any) -> None:
    copied(w, "lake/a", "lake/b")
    go(w, "lake/b")
    look(w)
    lake = Repository.objects.create(region=AWAY, name="restored", storage_namespace=namespace, creation_date=1)
    w.later(61)
    w.copy()
    assert len(w.there()) == 2
    (link,) = rule_reading(Rule.objects.get(), clock.now()).links
    assert link.told.word == "Frozen" and "a repository of lakeFS" in str(link.told.sentence)
    assert "Remove one of the two" in str(link.told.sentence)
    lake.delete()
    approvals.confirm_source(actor=root, name="r", number=1)
    follow(w)
    assert set(w.there()) == {"lake/a"}


# --- what a store answers ---------------------------------------------------------------------------------------------


def test_a_conflict_that_is_none_of_the_object_is_tried_again(w: World) -> None:
    copied(w, "a", "b")
    go(w, "b")
    look(w)
    w.later(61)
    w.away.before = refusing(Conflict("409 OperationAborted"), "DELETE")
    w.copy()
    assert "b" in w.there() and told(w) != "Up to date"
    w.away.before = quiet
    w.later(5)
    w.copy()
    assert set(w.there()) == {"a"}


def test_who_approves_twice_or_without_the_right_changes_nothing(w: World, root: Any) -> None:
    keys = [f"k{n:02}" for n in range(20)]
    copied(w, *keys, delete_percent=10)
    go(w, *keys[:9])
    look(w)
    number = Approval.objects.get().pk
    nobody = person("nobody")
    with pytest.raises(Denied):
        approvals.approval_decide(actor=nobody, name="r", number=number, approved=True)
    approvals.approval_decide(actor=root, name="r", number=number, approved=False)
    with pytest.raises(Conflict):
        approvals.approval_decide(actor=root, name="r", number=number, approved=True)
    follow(w)
    assert len(w.there()) == 20
    assert Approval.objects.get(pk=number).state == ApprovalState.REJECTED.value
    assert deletions.WAITING not in {row.status for row in w.rows()}
