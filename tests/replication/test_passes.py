"""Passes of rules: what lacks is brought, or told; how they end; and what meets them on the way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest

from core.errors import Denied, Invalid
from core.replicating.passes import PassKind, PassState, What, unpack
from db import clock
from jobs.models import Duty
from replication.engine import settling
from replication.engine.passes import duty, reading
from replication.models import Link, OpenObject, Pass, PassRows, PassStretch, Rule, Shard
from replication.services.passes import links_of
from replication.transitions import ledger, passes
from replication.transitions.duties import PASS
from tests.replication.world import AWAY, FAR, World, refusing, silent

pytestmark = pytest.mark.django_db


class Killed(BaseException):
    """The worker is gone."""


def resync(w: World, number: int = 1, **more: Any) -> Pass:
    link = w.link(number)
    values = {"kind": PassKind.RESYNC.value, "who": "olga", "region": link.rule.region, "began_at": clock.now()}
    return passes.begin(Pass(rule=link.rule, link=link, **values | more))


def dry_run(w: World, **more: Any) -> Pass:
    rule = Rule.objects.get()
    values = {"kind": PassKind.DRY_RUN.value, "who": "olga", "region": rule.region, "began_at": clock.now()}
    return passes.begin(Pass(rule=rule, **values | more))


def through(w: World, made: Pass, rounds: int = 12) -> Pass:
    """Until it has ended, or has been looked at so often."""
    for _ in range(rounds):
        w.look()
        w.copy()
        made.refresh_from_db()
        if made.ended_at is not None:
            break
    return made


def rows_of(made: Pass) -> list[tuple[str, str, str]]:
    """The report: key, action, code."""
    return [(row.key, row.action, row.code) for part in made.parts.all() for row in unpack(bytes(part.rows))]


def keys_of(w: World, number: int) -> list[str]:
    if number > 100:
        for store in w.stores.values():
            store.per_page = 1000
    keys = [f"k{at:04d}" for at in range(number)]
    for key in keys:
        w.put(key, key.encode())
    return keys


def test_what_lacks_is_brought_and_what_is_equal_is_left_alone(w: World) -> None:
    keys_of(w, 10)
    w.rule()
    w.work()
    del w.away.buckets["out"]["k0003"]
    w.away.buckets["out"]["k0005"] = b"other"
    w.away.written.clear()
    made = through(w, resync(w))
    assert (made.state, made.message) == (PassState.COMPLETED, "")
    assert made.actions == {"1": {"equal": [8, 40], "copy": [1, 5], "overwrite": [1, 5]}}
    assert (made.looked_at, made.noted, made.copied, made.copied_bytes, made.failed) == (10, 2, 2, 10, 0)
    assert [key for _, key, _ in w.away.written] == ["k0003", "k0005"]
    assert w.there() == w.home.buckets["src"]
    assert not Duty.objects.filter(kind=PASS).exists() and not PassStretch.objects.exists()
    w.check_counts()


def test_all_sends_everything_again_and_once(w: World) -> None:
    keys = keys_of(w, 10)
    w.rule()
    w.work()
    w.away.written.clear()
    del w.away.buckets["out"]["k0003"]
    made = through(w, resync(w, what=What.ALL.value))
    assert (made.state, made.copied, made.noted) == (PassState.COMPLETED, 10, 10)
    assert made.actions == {"1": {"again": [9, 45], "copy": [1, 5]}}
    assert sorted(key for _, key, _ in w.away.written) == keys
    assert not OpenObject.objects.exists()


def test_an_object_that_is_in_hand_while_it_is_to_be_sent_again_is_sent(w: World) -> None:
    keys_of(w, 1)
    w.rule()
    w.work()
    w.away.written.clear()
    link = w.link()
    ledger.note(link, [ledger.Lack(b"k0000", 5, "other")], clock.now())
    asked = w.away.before

    def meanwhile(method: str, bucket: str, key: str) -> None:
        if method == "HEAD" and key:
            w.away.before = asked
            resync(w, what=What.ALL.value)
            OpenObject.objects.update(again=True, of_pass=Pass.objects.get().pk)

    w.away.before = meanwhile
    link.refresh_from_db()
    Link.objects.filter(pk=link.pk).update(workers=1)
    with mock.patch("replication.engine.round.Lanes.submit", _at_once):
        w.copy()
    assert w.names() == ["k0000"]
    made = through(w, Pass.objects.get())
    assert [key for _, key, _ in w.away.written] == ["k0000"] and made.state == PassState.COMPLETED


def _at_once(lanes: Any, act: Callable[[], Any], *, large: bool) -> Any:
    from concurrent.futures import Future

    done: Future[Any] = Future()
    done.set_result(act())
    return done


def test_one_that_was_sent_by_a_worker_that_is_gone_and_has_changed_since_is_sent_again(w: World) -> None:
    """The source has another object than the pass saw, and the target has that by now."""
    w.put("a", b"one")
    w.rule()
    w.work()
    made = resync(w, what=What.ALL.value)
    w.look()
    w.put("a", b"another")
    with mock.patch.object(settling, "settle", side_effect=Killed), pytest.raises(Killed):
        w.copy()
    assert w.there() == {"a": b"another"}
    w.later(200)
    made = through(w, made)
    assert (made.state, made.copied, w.rows()) == (PassState.COMPLETED, 1, [])


def test_three_of_a_thousand_fail_and_are_named_and_a_later_retry_changes_no_end(w: World) -> None:
    """Scenario 7."""
    keys_of(w, 1000)
    w.rule()
    w.away.before = refusing(Invalid("metadata is too large"), "PUT", keys="k000")
    for key in ("k0003", "k0004", "k0005", "k0006", "k0007", "k0008", "k0009"):
        del w.home.buckets["src"][key]
    made = through(w, resync(w))
    assert (made.state, made.failed) == (PassState.WITH_FAILURES, 3)
    assert made.message == "3 objects could not be copied"
    assert rows_of(made) == [(f"k000{at}", "failed", "TargetRefused") for at in range(3)]
    assert w.names(status="failed") == ["k0000", "k0001", "k0002"] and made.copied == 990
    w.away.before = lambda method, bucket, key: None
    ledger.retry(w.link(), passes.Q(), clock.now())
    w.copy()
    assert w.rows() == [] and w.there() == w.home.buckets["src"]
    made.refresh_from_db()
    assert (made.state, made.failed, made.copied, made.rows) == (PassState.WITH_FAILURES, 3, 990, 3)


def test_an_empty_prefix_is_nothing_eligible_and_says_why(w: World) -> None:
    """Scenario 7, second half."""
    keys_of(w, 3)
    w.rule(existing=False)
    w.later(60)
    made = through(w, resync(w, prefix="none/"))
    assert (made.state, made.message) == (
        PassState.NOTHING,
        "the source has no object whose key begins with 'none/'",
    )
    Rule.objects.update(created_at=clock.now())
    made = through(w, resync(w))
    assert made.state == PassState.NOTHING
    assert made.message == "the source has no object that is to be copied: 3 objects not what the rule copies"
    Rule.objects.update(existing=True)
    made = through(w, resync(w, older_than=clock.now() - timedelta(days=1)))
    assert made.message == "the source has no object that is to be copied: 3 objects not older than asked"


def test_it_goes_on_after_an_object_that_is_gone_by_then(w: World) -> None:
    """Scenario 6: kill -9 after a page; the object at the checkpoint is deleted."""
    keys_of(w, 2500)
    w.rule()
    Shard.objects.update(due_at=clock.now() + timedelta(days=1))
    made = resync(w)
    judge = reading.Judge.judge
    windows = []

    def kill(self: Any, window: Any) -> Any:
        windows.append(window)
        if len(windows) == 2:
            raise Killed
        return judge(self, window)

    with mock.patch.object(reading.Judge, "judge", kill), pytest.raises(Killed):
        w.look()
    at = bytes(PassStretch.objects.get().after).decode()
    assert at == "k0999" and windows[0].last == at
    for key in (at, "k1000"):
        del w.home.buckets["src"][key]
    made = through(w, made, rounds=20)
    assert (made.state, made.looked_at, made.noted) == (PassState.COMPLETED, 2499, 2499)
    assert made.copied + made.gone == 2499 and made.gone <= 1
    assert w.there().keys() >= w.home.buckets["src"].keys()


def test_whoever_is_killed_at_any_step_counts_nothing_twice_and_loses_nothing(w: World) -> None:
    keys = keys_of(w, 7)
    w.rule()
    w.work()
    for number in range(1, 36):
        for key in w.there():
            del w.away.buckets["out"][key]
        made = resync(w, what=(What.ALL if number % 2 else What.MISSING).value)
        left = [number]

        def step(*args: Any, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

        def stepping(act: Callable[..., Any], step: Callable[[], None] = step) -> Callable[..., Any]:
            def stepped(*args: Any, **named: Any) -> Any:
                step()
                told = act(*args, **named)
                step()
                return told

            return stepped

        w.home.before = step
        with (
            mock.patch.object(passes, "note", stepping(passes.note)),
            mock.patch.object(passes, "end", stepping(passes.end)),
            mock.patch.object(ledger, "hold", stepping(ledger.hold)),
            mock.patch.object(ledger, "note", stepping(ledger.note)),
            mock.patch.object(duty, "end_of", stepping(duty.end_of)),
        ):
            for _ in range(3):
                try:
                    w.look()
                except Killed:
                    break
        w.home.before = lambda *args: None
        w.later(200)
        made = through(w, made)
        assert made.state == PassState.COMPLETED, (number, made.state, made.message)
        assert (made.looked_at, made.noted, made.copied) == (7, 7, 7), number
        assert sorted(w.there()) == keys
        w.check_counts()


def test_a_pass_waits_for_a_link_that_is_paused_down_or_blocked(w: World) -> None:
    keys_of(w, 30)
    w.rule()
    made = resync(w)
    Link.objects.update(paused=True)
    assert w.look() == ["the link is paused"]
    Link.objects.update(paused=False)
    w.look()
    w.away.before = refusing(Denied("no right to write"), "PUT")
    for _ in range(4):
        w.copy()
        w.look()
    assert w.link().health == "blocked"
    made.refresh_from_db()
    assert (made.state, made.failed) == (PassState.RUNNING, 0) and made.message.startswith("the link is blocked")
    healthy = Link.objects.filter(pk=w.link().pk)
    health = healthy.values("health", "stale_since", "stale_message").get()
    healthy.update(health="up", stale_since=clock.now(), stale_message="it has lost its pin")
    w.look()
    made.refresh_from_db()
    assert made.message == "the link is stale: it has lost its pin"
    healthy.update(**health)
    w.away.before = lambda method, bucket, key: None
    for _ in range(6):
        w.later(70)
        w.copy()
    made = through(w, made)
    assert (made.state, made.copied, made.failed) == (PassState.COMPLETED, 30, 0)


def test_a_source_that_does_not_answer_is_waited_for_and_one_that_refuses_fails_it(w: World) -> None:
    keys_of(w, 3)
    w.rule()
    made = resync(w)
    w.home.before = silent("LIST")
    for _ in range(5):
        w.later(4000)
        w.look()
    made.refresh_from_db()
    assert (made.state, made.message) == (PassState.RUNNING, "nobody answers")
    w.home.before = refusing(Denied("no right to list"), "LIST")
    w.look()
    made.refresh_from_db()
    assert made.state == PassState.RUNNING
    w.later(601)
    w.look()
    made.refresh_from_db()
    assert (made.state, made.message) == (PassState.FAILED, "no right to list")
    assert not OpenObject.objects.filter(of_pass__isnull=False).exists()


def test_one_that_is_canceled_waits_for_nothing_and_what_it_noted_is_sent_only_if_it_lacks(w: World) -> None:
    keys_of(w, 5)
    w.rule()
    w.work()
    w.away.written.clear()
    made = resync(w, what=What.ALL.value)
    w.look()
    assert len(w.rows(again=True)) == 5
    passes.end(made, PassState.CANCELED, "canceled by olga", clock.now())
    w.work()
    assert w.away.written == [] and w.rows() == []
    made.refresh_from_db()
    assert made.state == PassState.CANCELED and not Duty.objects.filter(kind=PASS).exists()


def test_what_fails_and_may_pass_ends_the_pass_after_some_tries_and_is_tried_on(w: World) -> None:
    from core.errors import RemoteFailure

    keys_of(w, 2)
    w.rule()
    w.away.before = refusing(RemoteFailure("500"), "PUT", keys="k0001")
    made = resync(w)
    for _ in range(8):
        w.look()
        w.copy()
        w.later(3600)
    w.look()
    made.refresh_from_db()
    assert (made.state, made.failed) == (PassState.WITH_FAILURES, 1)
    assert rows_of(made) == [("k0001", "failed", "TargetFailed")]
    assert w.names(status="pending") == ["k0001"]


def test_no_more_objects_wait_at_a_time_than_may(w: World) -> None:
    keys_of(w, 3000)
    w.rule()
    made = resync(w)
    with mock.patch.object(reading, "AHEAD", 1000), mock.patch.object(duty, "AHEAD", 1000):
        w.look()
        assert len(w.rows()) == 1000
        made = through(w, made, rounds=30)
    assert (made.state, made.copied) == (PassState.COMPLETED, 3000)


def test_a_ledger_without_room_makes_the_pass_wait_and_loses_nothing(w: World) -> None:
    keys_of(w, 30)
    w.rule()
    made = resync(w)
    with mock.patch.object(ledger, "MOST_OPEN", 20):
        w.look()
        assert len(w.rows()) == 18 and not w.link().overflowed
    made = through(w, made)
    assert (made.state, made.copied) == (PassState.COMPLETED, 30)


def test_a_ledger_that_stays_without_room_is_told_and_the_source_left_alone(w: World) -> None:
    keys_of(w, 30)
    w.rule()
    w.away.before = refusing(Invalid("no"), "PUT", keys="k")
    with mock.patch.object(ledger, "MOST_OPEN", 20):
        w.scan()
        w.copy()
        made = resync(w)
        w.look()
        made.refresh_from_db()
        assert made.state == PassState.RUNNING and "as many open objects as it may have" in made.message
        assert Duty.objects.get(kind=PASS).due_at > clock.now() + timedelta(seconds=5)
    w.away.before = lambda *_: None
    made = through(w, made)
    assert (made.state, made.message, len(w.there())) == (PassState.COMPLETED, "", 30)


def test_a_target_that_comes_while_a_dry_run_goes_on_is_none_of_it(w: World) -> None:
    for store in w.stores.values():
        store.per_page = 5
    keys_of(w, 20)
    rule = w.rule()
    made = dry_run(w)
    note = reading.Reading._note

    def once(self: Any, *of: Any) -> bool:
        self.full = True
        return note(self, *of)

    with mock.patch.object(reading.Reading, "_note", once):
        w.look()
    made.refresh_from_db()
    assert made.state == PassState.RUNNING and made.actions["1"]["copy"][0] == 5
    Link.objects.create(rule=rule, number=2, region=FAR, uri="s3://two", added_at=clock.now(), uncompared=True)
    made = through(w, made)
    assert made.state == PassState.COMPLETED
    assert {link: {action: n for action, (n, _) in of.items()} for link, of in made.actions.items()} == {
        "1": {"copy": 20}
    }
    assert [number for number, _, _ in links_of(made)] == [1]


def test_a_dry_run_writes_nothing_and_tells_what_the_real_one_does(w: World) -> None:
    """Scenario 38."""
    keys_of(w, 1200)
    w.put("z" * 1023)
    w.rule((AWAY, "s3://out/t"), (FAR, "s3://two"))
    for at in range(100):
        w.away.buckets["out"][f"t/k{at:04d}"] = f"k{at:04d}".encode() if at < 60 else b"other"
    before = dict(w.away.buckets["out"])
    made = through(w, dry_run(w))
    assert made.state == PassState.COMPLETED and not OpenObject.objects.exists()
    assert w.away.written == [] and w.away.buckets["out"] == before
    told = made.actions["1"]
    assert told == {"copy": [1100, 5500], "overwrite": [40, 200], "equal": [60, 300], "skip:KeyTooLong": [1, 4]}
    assert made.actions["2"] == {"copy": [1201, 6004]}
    assert len(rows_of(made)) == made.rows == 1100 + 40 + 1 + 1201
    real = through(w, resync(w))
    assert real.actions == {"1": told}
    assert (real.state, real.copied, real.failed) == (PassState.WITH_FAILURES, 1140, 1)


def test_a_dry_run_of_a_wish_needs_no_rule(w: World) -> None:
    keys_of(w, 3)
    targets = [{"region": AWAY, "uri": "s3://out"}, {"region": FAR, "uri": "s3://two/x"}]
    wish = {"name": "x", "region": "us-east-1", "uri": "s3://src", "existing": True, "new": True, "targets": targets}
    values = {"kind": PassKind.DRY_RUN.value, "who": "olga", "region": "us-east-1", "began_at": clock.now()}
    made = through(w, passes.begin(Pass(wish=wish, **values)))
    assert made.state == PassState.COMPLETED
    assert made.actions == {"1": {"copy": [3, 15]}, "2": {"copy": [3, 15]}}
    assert not Rule.objects.exists() and w.away.written == [] == w.far.written


def test_reports_go_after_a_while_and_with_the_rule(w: World) -> None:
    keys_of(w, 3)
    w.rule()
    made = through(w, dry_run(w))
    assert PassRows.objects.count() == 1
    w.later(29 * 86400)
    Pass.forget_ended()
    assert Pass.objects.exists()
    w.later(2 * 86400)
    Pass.forget_ended()
    assert not Pass.objects.exists() and not PassRows.objects.exists()
    made = through(w, dry_run(w))
    going = resync(w)
    w.look()
    Rule.objects.update(deleting=True)
    w.work()
    assert not Rule.objects.exists() and not Pass.objects.filter(pk__in=[made.pk, going.pk]).exists()
    w.look()
    assert not Duty.objects.filter(kind=PASS).exists()
