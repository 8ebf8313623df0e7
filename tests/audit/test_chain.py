"""Nothing of the record can be changed, removed, moved or added without `audit verify` naming it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet
from hypothesis import HealthCheck, given, settings, strategies

from audit import chain, db_triggers, rounds, verify
from audit.models import AuditChain, AuditEvent
from audit.verify import ChainPosition
from rbac import services

pytestmark = pytest.mark.django_db

TEXTS = strategies.text(strategies.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=40)
PLAIN = strategies.none() | strategies.booleans() | strategies.integers(-(2**53), 2**53) | TEXTS
DETAILS = strategies.none() | strategies.dictionaries(TEXTS, PLAIN | strategies.lists(PLAIN, max_size=3), max_size=4)


def add(number: int) -> None:
    for one in range(number):
        services.audit(
            actor="system:tests", right=("fs:MirrorRepository", f"arn:{one}"), verb="change", after={"n": one}
        )


def rows(**which: object) -> QuerySet[AuditEvent]:
    """Past what the application allows."""
    return QuerySet(model=AuditEvent).filter(**which)


@pytest.fixture
def ten(db: None) -> None:
    add(10)
    assert chain.append_waiting() == 10


def wrong(noted: ChainPosition | None = None) -> str:
    return verify.verify(noted).wrong


def change(number: int) -> None:
    rows(number=number).update(reason="another")


def swap(one: int, other: int) -> None:
    first, second = AuditEvent.objects.get(number=one), AuditEvent.objects.get(number=other)
    rows(pk=first.pk).update(number=None)
    rows(pk=second.pk).update(number=one, digest=first.digest)
    rows(pk=first.pk).update(number=other, digest=second.digest)


def insert(before: int) -> None:
    for number in range(10, before - 1, -1):
        rows(number=number).update(number=number + 1)
    AuditEvent.objects.create(actor="tom", action="x", arn="*", number=before, digest="0" * 64)
    AuditChain.objects.update(number=11)


def test_a_chain_is_whole_and_goes_on(ten: None) -> None:
    assert verify.verify().place.number == 10 and not wrong()
    add(2)
    assert chain.waiting() == 2 and not wrong()
    chain.append_waiting()
    assert verify.verify().place.number == 12 and chain.append_waiting() == 0


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (lambda: change(4), "event 4 (row"),
        (lambda: rows(number=4).update(after={"n": 4.5}), "event 4 (row"),
        (lambda: rows(number=4).delete(), "event 4 is missing: event 5 follows event 3"),
        (lambda: rows(number__gt=7).delete(), "event 8 is missing: the chain goes up to event 10"),
        (lambda: swap(3, 8), "event 3 (row"),
        (lambda: insert(5), "event 5 (row"),
        (lambda: AuditEvent.objects.create(actor="", action="x", arn="*", number=11), "event 11 comes after"),
    ],
)
def test_the_first_event_that_is_wrong_is_named(ten: None, done: Callable[[], object], told: str) -> None:
    done()
    assert told in wrong()
    for _ in range(2):
        rounds.look_round()
    assert told in AuditChain.objects.get().wrong


def test_a_chain_that_ends_earlier_is_known_by_a_head_that_was_noted(ten: None) -> None:
    head = verify.verify().place
    rows(number__gt=7).delete()
    last = AuditEvent.objects.get(number=7)
    AuditChain.objects.update(number=7, digest=last.digest)  # whoever can do that leaves no trace here
    assert not wrong() and wrong(head) == "event 8 is missing: event 10 was recorded elsewhere"
    add(3)
    chain.append_waiting()
    assert not wrong() and "not the recorded one" in wrong(head)


def test_the_command_ends_with_1_and_tells_where(ten: None) -> None:
    out, err = StringIO(), StringIO()
    call_command("audit", "verify", stdout=out)
    assert f"verified up to event 10\nhead {verify.verify().place}\n" in out.getvalue()
    change(4)
    with pytest.raises(SystemExit, match="1"):
        call_command("audit", "verify", stdout=out, stderr=err)
    assert "broken: event 4 (row" in err.getvalue() and "whole up to 3:" in err.getvalue()


def test_it_is_read_again_bit_by_bit(ten: None) -> None:
    for _ in range(4):
        verify.check_some(4)
    told = AuditChain.objects.get()
    assert (told.whole_number, told.check_number, told.wrong) == (10, 10, "") and told.whole_at
    change(2)
    verify.check_some()
    assert not AuditChain.objects.get().wrong  # it was read within the hour
    AuditChain.objects.update(check_began_at=None)
    verify.check_some()
    assert "event 2 (row" in AuditChain.objects.get().wrong


def test_what_is_rolled_back_leaves_no_gap(ten: None) -> None:
    with pytest.raises(KeyError), transaction.atomic():
        add(3)
        raise KeyError
    add(1)
    chain.append_waiting()
    assert verify.verify().place.number == 11 and not wrong()


@pytest.fixture
def guarded(db: None) -> Iterator[None]:
    db_triggers.install()
    yield
    db_triggers.remove()


def test_the_database_itself_refuses_changes(guarded: None) -> None:
    add(3)
    assert db_triggers.is_installed() and chain.append_waiting() == 3
    add(1)
    table = AuditEvent._meta.db_table
    for statement in (
        f"UPDATE {table} SET reason = 'x'",
        f"UPDATE {table} SET number = 9, actor = 'tom' WHERE number IS NULL",
        f"UPDATE {table} SET digest = '' WHERE number = 1",
        f"DELETE FROM {table} WHERE number = 2",
        f"DELETE FROM {table} WHERE number IS NULL",
    ):
        with pytest.raises(DatabaseError, match=db_triggers.TOLD), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    assert chain.append_waiting() == 1 and not wrong()
    db_triggers.make_way(plan=[])
    assert db_triggers.is_installed()
    db_triggers.make_way(plan=["a migration"])
    assert db_triggers.is_installed() == (
        connection.vendor != "sqlite"
    )  # it rebuilds tables, which triggers are in the way of


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actor=TEXTS, before=DETAILS, after=DETAILS, reason=TEXTS)
def test_an_event_of_any_content_is_read_back_as_it_was_chained(
    db: None, actor: str, before: object, after: object, reason: str
) -> None:
    services.audit(actor=actor, right=("x", "*"), verb="change", before=before, after=after, reason=reason)
    chain.append_waiting()
    assert not wrong()


@pytest.mark.django_db(transaction=True)
def test_many_who_write_and_append_at_once_never_fork_it() -> None:
    failed: list[BaseException] = []

    def write(which: int) -> None:
        try:
            for one in range(12):
                try:
                    with transaction.atomic():
                        add(1)
                        if one % 3 == 0:
                            raise KeyError
                except KeyError:
                    pass
                if one % 4 == which % 4:
                    chain.append_waiting()
        except BaseException as error:
            failed.append(error)
        finally:
            connection.close()

    writers = [threading.Thread(target=write, args=(which,)) for which in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    chain.append_waiting()
    assert not failed and not wrong()
    assert list(AuditEvent.objects.order_by("number").values_list("number", flat=True)) == list(range(1, 49))
