"""A mirror that lacks more than is counted: what it says is a least figure, and says so."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core.mirroring.states import State
from db import clock
from mirrors.models import Blocker, Mirror, MirrorCommit
from mirrors.queries import missing_counts
from mirrors.services import backlog
from mirrors.status.mirror import MirrorStatus, mirror_status
from mirrors.views import commits
from rbac.models import User
from tests.api import Api
from tests.mirrors.factories import Line, block, make_mirror, make_repository
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db

FEW = 3
PAGE = "/mirrors/lake-eu/"
BLOCKERS = "/service/replication/v1/repositories/lake/mirrors/lake-eu/blockers"


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> Line:
    """A branch whose head lacks two more things than are counted."""
    for module in (missing_counts, backlog, commits):
        monkeypatch.setattr(module, "COUNTED", FEW)
    now = clock.now()
    line = Line(make_repository(now=now), "main", now)
    mirror = make_mirror("lake-eu", line.repository, now=now)
    line.reached(mirror, line.commit("A", ago=900), ago=800)
    lost = line.commit("B", ago=300)
    for number in range(FEW + 2):
        block(mirror, lost, f"orders/{number}.csv", now=now, ago=290 - number)
    return line


def read() -> MirrorStatus:
    return mirror_status(Mirror.objects.select_related("source").get())


def test_a_mirror_waits_for_at_least_so_many(main: Line) -> None:
    reading = read()
    assert (reading.waiting, reading.waiting_words, reading.waiting_figure) == (FEW, "3+ objects", "3+")
    assert reading.waiting_since == Blocker.objects.order_by("first_seen").first().first_seen


def test_what_is_gone_at_both_sides_takes_no_place_in_the_count(main: Line) -> None:
    Blocker.objects.filter(path__in=["orders/0.csv", "orders/1.csv"]).update(gone_at_source=True)
    assert read().waiting_words == "3 objects"


def test_damage_is_told_even_behind_all_that_is_counted(main: Line) -> None:
    Blocker.objects.filter(path="orders/4.csv").update(damage=True, attempts=2)
    reading = read()
    assert reading.state is State.DAMAGED
    assert "1 object that was complete before is missing or wrong" in reading.sentence
    assert "orders/4.csv" in reading.sentence


def test_more_damage_than_is_counted_is_told_as_more(main: Line) -> None:
    Blocker.objects.update(damage=True, attempts=2)
    assert "more than 3 objects that were complete before are missing" in read().sentence


def test_the_backlog_counts_those_that_were_missed_first(main: Line, olga: Client) -> None:
    said = text(olga.get(f"{PAGE}backlog/"))
    for words in ("One by one 3+", "Missing 3", "orders/ 3", "There are more than 3:", "orders/4.csv"):
        assert words in said


def test_groups_say_that_more_was_not_counted(main: Line, teammate: User) -> None:
    _, answer = Api(teammate).call("GET", f"{BLOCKERS}?group_by=reason")[:2]
    assert (answer["results"][0]["blockers"], answer["all_counted"]) == (FEW, False)
    _, answer = Api(teammate).call("GET", f"{BLOCKERS}?group_by=reason&prefix=orders/1")[:2]
    assert (answer["results"][0]["blockers"], answer["all_counted"]) == (1, True)


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}backlog/", f"{PAGE}commits/"])
def test_the_number_of_queries_does_not_grow_with_what_is_lacking(main: Line, olga: Client, path: str) -> None:
    few = queries(olga, path)
    mirror, now = Mirror.objects.get(), clock.now()
    for number in range(20):
        block(mirror, main.commits[-1], f"more/{number}", now=now, ago=100)
    assert queries(olga, path) <= few + 1  # one more is PostgreSQL's clock, which is asked every ten seconds


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


def plan(rows: Any) -> str:
    return str(rows.explain()) if connection.vendor == "sqlite" else ""


def test_sqlite_finds_commits_to_check_by_their_index(main: Line) -> None:
    rows = MirrorCommit.objects.filter(missing_counts.UNCHECKED, mirror=Mirror.objects.get())
    assert "mirror_commit_to_check" in plan(rows) or connection.vendor != "sqlite"


def test_sqlite_finds_what_a_range_lacks_by_its_index(main: Line) -> None:
    rows = Mirror.objects.get().blockers.held_by([Blocker.objects.first().holder_id])
    assert "holder_id=?" in plan(rows) or connection.vendor != "sqlite"
