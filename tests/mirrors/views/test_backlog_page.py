"""What a mirror lacks, on its page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from audit.models import AuditEvent
from mirrors.models import Blocker, Commit, Mirror
from tests.mirrors.factories import block, make_company
from tests.mirrors.harness import NAMESPACE, Deployment
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db(transaction=True)

BACKLOG = "/mirrors/analytics-eu/backlog/"


@pytest.fixture
def company() -> dict[str, Mirror]:
    made = make_company()
    commit = Commit.objects.get(message="nightly orders load")
    now = datetime.now(UTC)
    for path, reason in (("users/a.parquet", "etag-differs"), ("<b>x.parquet", "missing")):
        block(made["analytics-eu"], commit, path, now=now, ago=60, reason=reason)
    return made


def test_it_is_counted_by_reason_and_by_folder(olga: Client, company: Any) -> None:
    said = text(olga.get(BACKLOG))
    for words in ("Missing 4", "Etag differs 1", "orders/ 3", "users/ 1", "in no folder 1", "One by one 5"):
        assert words in said


def test_a_group_leads_to_its_things_and_a_chip_back(olga: Client, company: Any) -> None:
    page = olga.get(BACKLOG)
    assert 'href="?prefix=orders%2F"' in page.content.decode()
    narrowed = olga.get(BACKLOG, {"prefix": "orders/", "reason": "missing"})
    _, _, said = text(narrowed).partition("By reason")
    assert "orders/day=2026-11-20/ 3" in said and "users/" not in said
    assert 'href="?reason=missing"' in narrowed.content.decode()
    assert 'href="?prefix=orders%2F"' in narrowed.content.decode()


def test_what_does_not_fit_or_is_not_there_is_told(olga: Client, company: Any) -> None:
    assert "has no branch 'nowhere'" in text(olga.get(BACKLOG, {"branch": "nowhere"}))
    assert "Nothing matches these filters." in text(olga.get(BACKLOG, {"kind": "record"}))
    assert "Nothing is missing or wrong" in text(olga.get("/mirrors/models-eu/backlog/"))


def test_paths_are_escaped(olga: Client, company: Any) -> None:
    assert "<b>x.parquet" not in olga.get(BACKLOG).content.decode()


def test_the_csv_has_the_same_filters(olga: Client, company: Any) -> None:
    page = olga.get(BACKLOG, {"reason": "etag-differs"}).content.decode()
    blockers = "/service/replication/v1/repositories/analytics/mirrors/analytics-eu/blockers"
    assert f'href="{blockers}?reason=etag-differs&amp;format=csv"' in page


@pytest.mark.parametrize(
    ("form", "number"),
    [
        ({"which": "one-{first}"}, "1 object"),
        ({"which": "selected", "thing": ["{first}", "{last}"]}, "2 objects"),
        ({"which": "reason", "reason": "etag-differs"}, "1 object"),
        ({"which": "all"}, "5 objects"),
    ],
)
def test_one_some_those_of_a_reason_or_all_are_looked_for(
    olga: Client, company: Any, form: dict[str, Any], number: str
) -> None:
    rows = Blocker.objects.filter(mirror=company["analytics-eu"]).order_by("pk")
    keys = {"first": rows[0].pk, "last": rows[4].pk}
    filled = {
        name: [one.format(**keys) for one in value] if isinstance(value, list) else value.format(**keys)
        for name, value in form.items()
    }
    answer = olga.post(f"{BACKLOG}retry/", filled, headers={"HX-Request": "true", "HX-Target": "notices"})
    assert f"Checking {number} again now." in text(answer)
    assert AuditEvent.objects.filter(actor="olga", after__mirror="analytics-eu").count() == 1


def test_nothing_selected_is_told(olga: Client, company: Any) -> None:
    assert "Nothing selected can be checked again" in text(
        olga.post(f"{BACKLOG}retry/", {"which": "selected"}, follow=True)
    )


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"which": "some"},
        {"which": "one-x"},
        {"which": "selected", "thing": "1; drop"},
        {"which": "reason"},
        {"which": "reason", "reason": "\0"},
    ],
)
def test_what_makes_no_sense_is_refused(olga: Client, company: Any, form: dict[str, Any]) -> None:
    assert olga.post(f"{BACKLOG}retry/", form).status_code == 400


def test_a_thing_that_several_ranges_need_is_one_row_with_the_commits_that_wait_for_it(
    lm: Deployment, head: str, olga: Client
) -> None:
    main = lm.lake.repository.branches["main"]
    lm.lake.repository.branches["dev"] = main
    first = lm.lake.commit("main", {"c": b"3"})
    lost = f"{NAMESPACE}/{lm.lake.address_of(first, 'c')}"
    second = lm.lake.commit("main", {"d": b"4"})
    lm.arrive()
    lm.eu_store.hidden.add(lost)
    lm.work(3)
    rows = Blocker.objects.filter(path="c")
    assert rows.count() == 2 and lm.lake.files_of(first) != lm.lake.files_of(second)
    page = olga.get("/mirrors/lake-eu/backlog/")
    said = text(page)
    assert "One by one 1" in said and "Missing 1" in said and "2 commits" in said
    later = datetime.now(UTC) + timedelta(hours=1)
    [shown] = page.context["page"].rows
    Blocker.objects.update(look_at=later)
    answer = olga.post("/mirrors/lake-eu/backlog/retry/", {"which": f"one-{shown.pk}"}, follow=True)
    assert "Checking 1 object again now" in text(answer)
    assert not Blocker.objects.filter(look_at=later).exists()
