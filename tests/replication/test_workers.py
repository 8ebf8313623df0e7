"""Several workers, and those that are gone: who holds a lease writes, and late writes are waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from core.errors import Fenced
from db import clock
from jobs import duties
from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty
from replication.engine import link as link_duty
from replication.engine import scan
from replication.models import Link, OpenObject
from replication.transitions import ledger, touching
from replication.transitions.duties import LINK, SCAN
from replication.transitions.ledger import Lack, Tried
from tests.replication.world import AWAY, FAR, HOME, World, silent

BOTH = pytest.mark.django_db


def lease_of(kind: str, holder: str = "worker-1") -> Lease:
    """Somebody takes the duty, whoever had it."""
    duty = Duty.objects.get(kind=kind)
    Duty.objects.filter(pk=duty.pk).update(due_at=Now(), holder="", until=None)
    assert Duty.objects.claim(duty.pk, holder=holder, lease=60.0, interval=30.0)
    duty.refresh_from_db()
    return Lease(duty, holder, duty.attempt)


@BOTH
def test_who_lost_the_lease_writes_down_nothing(w: World) -> None:
    w.put("a")
    w.rule()
    w.scan()
    lost = lease_of(LINK)
    lease_of(LINK, "worker-2")
    with pytest.raises(Fenced):
        link_duty.advance(lost)
    assert w.there() == {} and w.names() == ["a"]
    lost = lease_of(SCAN)
    lease_of(SCAN, "worker-2")
    w.put("b")
    w.later(600)
    with pytest.raises(Fenced):
        scan.advance(lost)
    assert w.names() == ["a"]
    w.check_counts()


@BOTH
def test_who_takes_over_waits_for_what_the_one_before_may_still_write(w: World) -> None:
    w.put("a", b"one")
    w.rule()
    w.scan()

    class Killed(BaseException):
        pass

    def kill(method: str, bucket: str, key: str) -> None:
        if method == "PUT":
            raise Killed

    w.away.before = kill
    with pytest.raises(Killed):
        w.copy()
    w.away.before = lambda method, bucket, key: None
    assert w.link().writes_until is not None
    assert w.copy() == ["waiting for the last writes of a lost worker"]
    assert w.there() == {}
    w.later(100)
    w.copy()
    assert w.there() == {"a": b"one"} and w.link().writes_until is None


@BOTH
def test_what_was_written_before_the_worker_was_killed_is_not_written_again(w: World) -> None:
    for number in range(5):
        w.put(f"k{number}")
    w.rule()
    w.scan()

    class Killed(BaseException):
        pass

    real, killed = ledger.settle, []

    def settle(link: Link, tried: list[Tried]) -> int:
        if not killed:
            killed.append(True)
            raise Killed
        return real(link, tried)

    ledger.settle = settle  # type: ignore[assignment]
    try:
        with pytest.raises(Killed):
            w.copy()
        assert len(w.there()) == 5 and len(w.rows()) == 5
        w.later(100)
        w.copy()
    finally:
        ledger.settle = real
    assert len(w.away.written) == 5 and w.rows() == []
    w.check_counts()


@BOTH
def test_a_duty_of_what_is_gone_goes(w: World) -> None:
    rule = w.rule()
    scan_lease, link_lease = lease_of(SCAN), lease_of(LINK)
    rule.delete()
    assert scan.advance(scan_lease) == link_duty.advance(link_lease) == DutyOutcome("deleted")
    assert not Duty.objects.filter(kind__in=[SCAN, LINK]).exists()


@contextmanager
def held(pk: int) -> Iterator[Link]:
    """A transaction that holds the link."""
    with transaction.atomic():
        link = ledger.hold(pk)
        assert link is not None
        yield link


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time: nothing can be locked")
@pytest.mark.django_db(transaction=True)
def test_counts_stay_right_while_looks_and_copies_and_retries_go_on_at_once(w: World) -> None:
    w.rule()
    pk, errors = w.link().pk, list[Exception]()

    def note(own: int) -> None:
        for turn in range(12):
            keys = [b"k%02d" % ((turn * 3 + own + n) % 40) for n in range(12)]
            with held(pk) as link:
                ledger.note(link, [Lack(key, turn, f"{own}-{turn}") for key in keys], clock.now())

    def bring(own: int) -> None:
        failed = {"status": "failed", "code": "TargetRefused", "attempts": 1}
        for _ in range(20):
            rows = OpenObject.objects.filter(link=pk).order_by("?")[:6]
            tried = [Tried(row.pk, row.claimed, "", failed if at % 2 else None) for at, row in enumerate(rows)]
            with held(pk) as link:
                ledger.settle(link, tried)

    def retry(own: int) -> None:
        for _ in range(20):
            with held(pk) as link:
                ledger.retry(link, Q(status="failed"), clock.now())

    def alone(act: Callable[[int], None], own: int) -> None:
        try:
            act(own)
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    acts = [(act, own) for own in range(3) for act in (note, bring, retry)]
    threads = [threading.Thread(target=alone, args=one) for one in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    w.check_counts()


@BOTH
def test_a_cycle_begins_when_it_is_due_or_asked_for(w: World) -> None:
    rule = w.rule(scan_every=100)
    w.scan()
    rule.refresh_from_db()
    assert rule.cycle == 1
    w.scan()
    rule.refresh_from_db()
    assert rule.cycle == 1
    rule.scan_wanted = True
    rule.save()
    w.scan()
    rule.refresh_from_db()
    assert (rule.cycle, rule.scan_wanted) == (2, False)
    w.later(101)
    w.scan()
    rule.refresh_from_db()
    assert rule.cycle == 3
    assert rule.full_began_at is not None and clock.now() - rule.full_began_at < timedelta(seconds=50)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time: nothing can be locked")
@pytest.mark.django_db(transaction=True)
def test_events_looks_and_copies_of_one_rule_never_wait_for_each_other_in_a_circle(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger takes few rows and one target comes and goes, so that stretches are marked from all sides."""
    monkeypatch.setattr(ledger, "MOST_OPEN", 5)
    for number in range(30):
        w.put(f"k{number:02}")
    w.rule((AWAY, "s3://out"), (FAR, "s3://two"), scan_every=1)
    errors, over = list[Exception](), threading.Event()

    def name() -> None:
        for turn in range(40):
            keys = {("src", f"k{(turn * 7 + n) % 30:02}") for n in range(12)}
            touching.objects_changed(HOME, keys)

    def run(subject: int, kind: str) -> None:
        duty = Duty.objects.get(kind=kind, subject=subject)
        while not over.is_set():
            Duty.objects.filter(pk=duty.pk).update(due_at=Now())
            duties.run(duty.pk, holder=f"worker {kind} {subject}")
            duty.refresh_from_db()
            if duty.outcome.startswith("internal"):
                errors.append(AssertionError(duty.outcome))

    def come_and_go() -> None:
        for turn in range(12):
            w.away.before = silent() if turn % 2 else (lambda method, bucket, key: None)
            w.later(40)
            over.wait(0.2)

    def alone(act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    subjects = [*Duty.objects.filter(kind__in=[SCAN, LINK]).values_list("subject", "kind")]
    working = [threading.Thread(target=alone, args=(partial(run, *one),)) for one in subjects]
    others = [threading.Thread(target=alone, args=(act,)) for act in (name, name, come_and_go)]
    for thread in (*working, *others):
        thread.start()
    for thread in others:
        thread.join()
    over.set()
    for thread in working:
        thread.join()
    assert errors == []
    w.check_counts()
    w.away.before = lambda method, bucket, key: None
    for _ in range(20):
        w.later(100)
        w.work(1)
    assert w.there() == w.there(FAR, "two") == w.home.buckets["src"]
    w.check_counts()
