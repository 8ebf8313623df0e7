"""Lists of open objects: each row on one page, whatever the filters and the order; and no list sorts or skips rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Q

from core.errors import Invalid
from core.replicating.states import OpenStatus
from db import clock
from replication.models import Link, OpenObject
from replication.queries import open_objects
from replication.queries.open_objects import OpenPages
from replication.transitions import ledger
from tests.replication.factories import a_rule, open_object

pytestmark = pytest.mark.django_db
CODES = {OpenStatus.PENDING: ("", "TargetDown"), OpenStatus.FAILED: ("TargetRefused",), OpenStatus.SKIPPED: ("Locked",)}


@pytest.fixture
def link() -> Link:
    """One with 40 open objects, noted in another order than that of their keys; another one has some, too."""
    link, other = (a_rule(name).links.get() for name in ("logs", "other"))
    kinds = [(status, code) for status, codes in CODES.items() for code in codes]
    for n in range(40):
        status, code = kinds[n % len(kinds)]
        open_object(link, f"{'ab'[n % 2]}/{n * 17 % 40:02}", status, code=code)
        open_object(other, f"a/{n}", status, code=code)
    return link


FILTERS: list[dict[str, str]] = [
    {},
    {"status": "failed"},
    {"code": "TargetDown"},
    {"status": "pending", "code": "TargetDown"},
    {"prefix": "a/"},
    {"prefix": "a/", "status": "pending"},
    {"prefix": "b/", "code": "TargetRefused"},
    {"prefix": "c"},
]


@pytest.mark.parametrize("few", [0, 1000], ids=["many", "few"])
@pytest.mark.parametrize("chosen", FILTERS, ids=str)
def test_each_row_is_on_one_page(link: Link, monkeypatch: pytest.MonkeyPatch, chosen: dict[str, str], few: int) -> None:
    monkeypatch.setattr(open_objects, "FEW", few)
    pages, after, found = OpenPages(link, **chosen), "", list[OpenObject]()
    while True:
        rows, after = pages.page(after, 3)
        assert len(rows) <= 3
        found += rows
        if not after:
            break
    wanted = open_objects.open_objects(link, **chosen)
    assert sorted(row.pk for row in found) == sorted(wanted.values_list("pk", flat=True))
    column = (lambda row: bytes(row.key)) if pages._goes_by_key() else (lambda row: row.pk)
    assert found == sorted(found, key=column)
    monkeypatch.setattr(open_objects, "CHUNK", 7)
    assert list(pages.each()) == found


def test_a_page_goes_on_where_the_last_row_is_gone(link: Link) -> None:
    pages = OpenPages(link, prefix="a/")
    rows, after = pages.page("", 5)
    OpenObject.objects.filter(pk=rows[-1].pk).delete()
    more, _ = pages.page(after, 100)
    assert rows[-1].key < more[0].key and len(rows) + len(more) == 20


@pytest.mark.parametrize("after", ["x", "kzz", "k1", "-1", "1e3"])
def test_what_is_no_offset_is_refused(link: Link, after: str) -> None:
    with pytest.raises(Invalid, match="not a next_offset"):
        OpenPages(link).page(after, 10)


# --- plans ------------------------------------------------------------------------------------------------------------


def plan_of(rows: Any) -> str:
    return str(rows.explain())


def test_lists_and_claims_go_along_an_index(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sorted, and no list reads what it does not show."""
    monkeypatch.setattr(open_objects, "FEW", 0)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
    for chosen, index in (
        ({}, "replication_open_noted"),
        ({"status": "pending"}, "replication_open_status"),
        ({"code": "TargetDown"}, "replication_open_code"),
    ):
        plan = plan_of(OpenPages(link, **chosen)._by_id("5")[:101])
        assert index in plan and "SORT" not in plan.upper() and "B-TREE" not in plan, plan
    for chosen in ({"prefix": "a/"}, {"prefix": "a/", "status": "pending", "code": "TargetDown"}):
        plan = plan_of(OpenPages(link, **chosen)._by_key("")[:101])
        assert "replication_open_once" in plan or "autoindex" in plan, plan
        assert "SORT" not in plan.upper() and "B-TREE" not in plan, plan
    claimed = plan_of(OpenObject.objects.filter(link=link.pk).due(clock.now())[:500])
    assert "replication_open_turn" in claimed and "SORT" not in claimed.upper() and "B-TREE" not in claimed, claimed


@pytest.mark.parametrize("chosen", [{"code": "SourceDown"}, {"status": "failed"}], ids=str)
def test_few_below_a_prefix_of_many_are_found_by_what_makes_them_few(link: Link, chosen: dict[str, str]) -> None:
    """Whatever the database has counted: the index of keys would give it all that lie below the prefix."""
    rows = [open_object(link, f"many/{n}", OpenStatus.PENDING, code=f"C{n % 3}") for n in range(300)]
    assert rows
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
    plan = plan_of(OpenPages(link, prefix="many/", **chosen)._by_id("")[:101])
    assert "replication_open_once" not in plan and "autoindex" not in plan, plan
    assert "SORT" not in plan.upper() and "B-TREE" not in plan, plan


# --- retries ----------------------------------------------------------------------------------------------------------


def test_a_retry_of_all_counts_by_the_counts_and_leaves_what_is_due(link: Link) -> None:
    due = open_object(link, "due", next_try=clock.now() - timedelta(minutes=3))
    held = ledger.hold(link.pk)
    assert held is not None
    now = clock.now()
    assert ledger.retry(held, Q(), now, counted=Q()) == 41
    assert set(OpenObject.objects.filter(link=link).values_list("status", "code")) == {("pending", "")}
    assert OpenObject.objects.filter(link=link, next_try__gt=now).count() == 0
    assert OpenObject.objects.get(pk=due.pk).next_try == due.next_try
    assert ledger.real_counts(link.pk) == {("pending", ""): (41, 4100)}
    assert {(c.status, c.code): c.number for c in link.counts.filter(number__gt=0)} == {("pending", ""): 41}
