"""What only a real database server shows: tests/test_postgres.py runs these on PostgreSQL.

Their numbers are those of docs/promotion.md.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from core.replication.causes import why_kept
from db import clock
from graveler.entries import AddressType
from jobs.models import Duty
from mirroring.validate import bring_asked
from mirrors.models import Mirror
from mirrors.services.backlog import files_bring, things_retry
from mirrors.services.settings import mirror_update
from mirrors.transitions.causes import note_causes
from rbac.models import User
from tests.mirroring.test_scenarios import mirrored, point
from tests.mirrors.harness import Deployment
from tests.mirrors.promise import arrive, missing, run, with_entry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def a(lm: Deployment) -> str:
    """A, which main points to at both sides."""
    return mirrored(lm, a=b"1")


@pytest.mark.parametrize("etag", ["x" * 300, "nul\0nul"], ids=["long", "nul"])
def test_72_an_odd_etag_of_what_has_not_arrived_stops_no_other_branch(lm: Deployment, a: str, etag: str) -> None:
    """PostgreSQL takes neither as it is."""
    odd = with_entry(lm, a, "data/odd/1", AddressType.RELATIVE, etag)
    point(lm, "dev", odd)
    lm.arrive("data/odd/1")
    lm.work()
    good = lm.lake.commit(files={"good": b"1"})
    arrive(lm)
    lm.work()
    assert (lm.head(), lm.head("dev"), missing()) == (good, "", ["odd"])


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time: nothing can be locked")
def test_79_settings_that_change_while_all_duties_run_meet_no_deadlock(lm: Deployment, a: str, owner: User) -> None:
    """PostgreSQL ends one of two that wait for each other; a duty would call that its own fault."""
    point(lm, "dev", a)
    lm.work()
    commits = [lm.lake.commit("dev", {f"n{n}": b"1"}) for n in range(12)]
    point(lm, "dev", a)
    arrive(lm)
    over, told = threading.Event(), list[str]()

    def repeat(deed: Callable[[], Any]) -> None:
        try:
            while not over.is_set():
                deed()
        except Exception as error:
            told.append(repr(error))
        finally:
            connection.close()

    def work(kind: str) -> None:
        run(lm, kind, holder=kind)
        told.extend(
            Duty.objects.filter(kind=kind, outcome__startswith="internal error").values_list("outcome", flat=True)
        )

    depths = itertools.cycle(["size", "etag"])

    def change() -> None:
        mirror_update(actor=owner, mirror=Mirror.objects.get(), changes={"depth": next(depths)})

    deeds = [change, *(functools.partial(work, kind) for kind in ("sense", "copy", "validate", "promote"))]
    threads = [threading.Thread(target=repeat, args=[deed]) for deed in deeds]
    for thread in threads:
        thread.start()
    for commit in commits:
        point(lm, "dev", commit)
        time.sleep(0.3)
    over.set()
    for thread in threads:
        thread.join()
    assert told == []
    lm.work()
    assert (lm.head("dev"), lm.torn()) == (commits[-1], [])


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time: nothing can be locked")
@pytest.mark.parametrize("ask", [files_bring, things_retry])
def test_who_asks_for_what_is_missing_and_a_round_that_copies_it_meet_no_deadlock(
    lm: Deployment, a: str, owner: User, ask: Callable[..., int]
) -> None:
    """Both write to many of the same rows, each in an order of its own."""
    head = lm.lake.commit(files={f"x{n:03}": b"1" for n in range(400)})
    lm.arrive(*(lm.lake.address_of(head, f"x{n:03}") for n in range(400)))
    lm.work()
    mirror, told, over = Mirror.objects.get(), list[str](), threading.Event()
    hashes = list(mirror.blockers.values_list("address_hash", flat=True))

    def repeat(deed: Callable[[], Any]) -> None:
        try:
            while not over.is_set():
                deed()
        except Exception as error:
            told.append(repr(error))
        finally:
            connection.close()

    def note() -> None:
        bring_asked._note(mirror, dict.fromkeys(hashes, bring_asked._Came.LATE))
        note_causes(mirror, {why_kept("asked"): hashes}, clock.now())

    round_ = threading.Thread(target=repeat, args=[note])
    round_.start()
    try:
        for _ in range(120):
            ask(actor=owner, mirror=mirror)
    finally:
        over.set()
        round_.join()
    assert (len(hashes), told) == (400, [])
