"""The list of mirrors: filters in the address, one order, a cursor, CSV, and what is done to several at once."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.models import AuditEvent
from mirrors.models import Mirror, Promotion, Repository, Validation
from mirrors.status import fleet
from mirrors.status.mirror import brief_statuses, mirror_status
from rbac.models import User
from tests.mirrors.factories import Line, make_company, make_mirror, make_repository
from tests.mirrors.harness import Deployment
from tests.mirrors.views.test_pages import HTMX, text

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def company() -> dict[str, Mirror]:
    return make_company()


def named(client: Client, query: str = "") -> list[str]:
    """The mirrors of a page, in its order."""
    page = client.get(f"/mirrors/{query}")
    return [reading.mirror.name for reading in page.context["readings"]]


# What it says


def test_an_empty_list_teaches_what_a_mirror_is_and_the_call(olga: Client) -> None:
    said = text(olga.get("/mirrors/"))
    assert "No mirror yet" in said
    assert "/service/replication/v1/repositories/lake/mirrors" in said


def test_the_list_says_first_who_needs_somebody(olga: Client, company: Any) -> None:
    said = text(olga.get("/mirrors/"))
    assert "3 mirrors need you: archive-eu is stopped, lab-eu is tampered, analytics-eu is blocked." in said
    assert named(olga)[:3] == ["archive-eu", "lab-eu", "analytics-eu"]


@pytest.mark.parametrize("history", ["all", "some"])
def test_a_line_says_what_the_mirrors_page_says(company: Any, history: str) -> None:
    """Although settled branches are only counted there; with a selection of branches all are read."""
    now = datetime.now(UTC)
    if history == "some":
        Mirror.objects.update(selected={"include": ["[!x]*"], "exclude": []})
    company["lab-eu"].branches.create(name="ours", head="", position=-1, stray=True)
    company["models-eu"].source.branches.filter(name="champion").update(gone_at=now)
    for line in brief_statuses(Mirror.objects.select_related("source"), now):
        alone = mirror_status(line.mirror, now)
        for what in ("state", "explanation", "lag", "staying", "caught_up", "pending", "behind", "waiting", "retry_at"):
            assert getattr(line, what) == getattr(alone, what), (line.mirror.name, what)


def test_settled_branches_are_counted_and_not_read(company: Any) -> None:
    models = next(one for one in brief_statuses(Mirror.objects.all()) if one.mirror.name == "models-eu")
    assert (len(models.branches), models.counted, models.caught_up, models.staying) == (0, 3, 3, 3)


def test_the_number_of_queries_stays_with_mirrors_and_branches(olga: Client, company: Any) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as captured:
            olga.get("/mirrors/")
        return len(captured)

    few, now = asked(), datetime.now(UTC)
    for number in range(5):
        source = make_repository(f"more-{number}", now=now)
        mirror = make_mirror(f"more-{number}", source, now=now)
        line = Line(source, "main", now)
        line.reached(mirror, line.commit("1", ago=100))
        line.commit("2", ago=10)
    assert asked() <= few


def test_a_branch_that_moved_a_moment_ago_makes_the_list_lively(olga: Client, company: Any) -> None:
    Mirror.objects.exclude(name="models-eu").delete()
    assert "every 60s" in olga.get("/mirrors/").content.decode()
    models = company["models-eu"]
    Promotion.objects.create(mirror=models, branch="main", why="advanced", at=datetime.now(UTC))
    assert "every 3s" in olga.get("/mirrors/").content.decode()


# Filters, order, pages


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?state=blocked", ["analytics-eu"]),
        ("?state=blocked&state=paused", ["analytics-eu", "billing-us"]),
        ("?region=us-east-1", ["billing-us"]),
        ("?from=eu-west-1", ["billing-us"]),
        ("?source=orders", ["orders-eu"]),
        ("?find=LAB", ["lab-eu"]),
        ("?find=eu&state=stopped", ["archive-eu"]),
        ("?state=nonsense&region=us-east-1&sort=nonsense&after=x:y", ["billing-us"]),
        ("?find=nowhere", []),
    ],
)
def test_filters_are_in_the_address(olga: Client, company: Any, query: str, names: list[str]) -> None:
    assert named(olga, query) == names


def test_each_filter_is_a_chip_that_takes_it_away(olga: Client, company: Any) -> None:
    page = olga.get("/mirrors/?state=blocked&state=paused&find=a&after=-1:x").content.decode()
    assert 'href="?state=paused&amp;find=a"' in page
    assert 'href="?state=blocked&amp;state=paused"' in page
    assert "Remove the filter State: Blocked" in page


def test_a_list_without_a_match_leads_back_to_all(olga: Client, company: Any) -> None:
    said = text(olga.get("/mirrors/?find=nowhere"))
    assert "No mirrors match these filters. Show all mirrors" in said
    assert "No mirror yet" not in said


@pytest.mark.parametrize("sort", ["urgency", "name", "lag"])
def test_pages_follow_one_another_in_every_order(
    olga: Client, company: Any, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = named(olga, f"?sort={sort}")
    monkeypatch.setattr("mirrors.views.list.PAGE", 3)
    seen, query = [], f"?sort={sort}"
    while query:
        page = olga.get(f"/mirrors/{query}")
        seen += [reading.mirror.name for reading in page.context["readings"]]
        query = page.context["more"]
    assert seen == whole
    assert len(seen) == len(company)
    if sort == "name":
        assert seen == sorted(seen)


def test_of_many_mirrors_the_order_may_be_some_seconds_old_but_no_line(
    olga: Client, company: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "FEW", 3)
    monkeypatch.setattr("mirrors.views.list.FEW", 3)
    monkeypatch.setattr(fleet, "_cached", None)
    before = named(olga)
    Mirror.objects.filter(name="models-eu").update(paused=True)
    Mirror.objects.filter(name="orders-eu").update(state="deleting")
    page = olga.get("/mirrors/")
    states = {reading.mirror.name: reading.state.word for reading in page.context["readings"]}
    assert list(states) == [name for name in before if name != "orders-eu"]
    assert states["models-eu"] == "Paused"


def test_the_list_is_given_as_csv_with_its_filters(olga: Client, company: Any) -> None:
    answer = olga.get("/mirrors/?find=-eu&format=csv")
    assert answer["Content-Type"].startswith("text/csv")
    rows = csv_rows(answer)
    assert "billing-us" not in rows and len(rows) == len(company) - 1
    assert rows["analytics-eu"]["status"] == "Blocked"
    assert rows["models-eu"]["branches_up_to_date"] == "3"
    assert rows["events-eu"]["lag_seconds"] == ""


def test_no_spreadsheet_runs_what_the_csv_of_the_list_says(olga: Client, company: Any) -> None:
    Repository.objects.filter(pk=company["models-eu"].source_id).update(name="=1+1")
    assert csv_rows(olga.get("/mirrors/?format=csv"))["models-eu"]["source_repository"] == "'=1+1"


def csv_rows(answer: Any) -> dict[str, dict[str, str]]:
    """The rows of a CSV answer by the mirror's name."""
    lines = b"".join(answer.streaming_content).decode()
    return {row["name"]: row for row in csv.DictReader(io.StringIO(lines))}


# Several at once


def change(client: Client, verb: str, *names: str, **more: Any) -> Any:
    return client.post("/mirrors/_change/?state=blocked", {"verb": verb, "mirror": names}, **more)


def test_several_are_paused_and_resumed_at_once(olga: Client, company: Any, lm: Deployment) -> None:
    answer = change(olga, "pause", "models-eu", "orders-eu", follow=True)
    assert answer.redirect_chain == [("/mirrors/?state=blocked", 302)]
    assert "Queued: paused: models-eu, orders-eu." in text(answer)
    assert set(Mirror.objects.filter(paused=True).values_list("name", flat=True)) == {
        "models-eu",
        "orders-eu",
        "billing-us",
    }
    assert "Queued: resumed: models-eu." in text(change(olga, "resume", "models-eu", headers=HTMX))
    assert AuditEvent.objects.filter(actor="olga").count() == 3


def test_several_are_looked_at_or_checked_and_who_refuses_is_named(olga: Client, company: Any, lm: Deployment) -> None:
    assert "Syncing: lab-eu, orders-eu." in text(change(olga, "sync", "orders-eu", "lab-eu", headers=HTMX))
    said = text(change(olga, "validate", "fresh-eu", "models-eu", headers=HTMX))
    assert "all heads are validated again: models-eu." in said
    assert "fresh-eu: 'fresh-eu' has no branch at a known commit yet" in said
    assert [one.mirror.name for one in Validation.objects.all()] == ["models-eu"]


def test_who_may_not_is_told_for_each_mirror(teammate: User, client: Client, company: Any) -> None:
    client.force_login(teammate)
    said = text(change(client, "pause", "models-eu", "orders-eu", headers=HTMX))
    assert "models-eu: tom may not fs:OperateMirror on arn:lakefs:fs:::repository/models" in said
    assert "orders-eu: tom may not" in said
    assert "Queued" not in said
    assert Mirror.objects.filter(paused=True).count() == 1


def test_nothing_chosen_and_an_unknown_verb_are_told(olga: Client, company: Any) -> None:
    assert "Select at least one mirror" in text(change(olga, "pause", headers=HTMX))
    assert "Select at least one mirror" in text(change(olga, "pause", "\0", "x" * 10_000, headers=HTMX))
    assert change(olga, "explode", "models-eu").status_code == 400
    assert olga.get("/mirrors/_change/").status_code == 405


def test_a_mirror_that_is_long_behind_is_before_one_that_just_is(olga: Client, company: Any) -> None:
    names = named(olga, "?sort=lag")
    assert names.index("billing-us") < names.index("orders-eu") < names.index("models-eu") < names.index("events-eu")


def test_of_many_branches_behind_those_that_waited_longest_speak(company: Any) -> None:
    now, models = datetime.now(UTC), company["models-eu"]
    for number in range(8):
        line = Line(models.source, f"more-{number}", now)
        line.reached(models, line.commit("1", ago=900))
        line.commit("2", ago=100 * (8 - number))
        line.commit("3", ago=5)
    line = next(one for one in brief_statuses(Mirror.objects.all(), now) if one.mirror.pk == models.pk)
    assert sorted(branch.name for branch in line.branches) == [f"more-{number}" for number in range(5)]
    alone = mirror_status(models, now)
    assert line.sentence == alone.sentence
    assert "more-0 is 2 commits and 13 min behind" in line.sentence
    for what in ("state", "lag", "staying", "caught_up", "pending", "behind"):
        assert getattr(line, what) == getattr(alone, what), what
    Mirror.objects.filter(pk=models.pk).update(paused=True)
    paused = next(one for one in brief_statuses(Mirror.objects.all(), now) if one.mirror.pk == models.pk)
    assert "8 branches wait" in paused.sentence


def test_a_row_tells_what_is_missing_and_when_all_was_last_in_order(olga: Client, company: dict[str, Mirror]) -> None:
    shown = text(olga.get("/mirrors/"))
    reading = mirror_status(company["analytics-eu"])
    assert reading.waiting and f"{reading.waiting_words} missing" in shown
    assert "validated" in shown


def test_of_many_mirrors_one_whose_branch_moved_meanwhile_is_read_again(
    olga: Client, company: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "FEW", 3)
    monkeypatch.setattr("mirrors.views.list.FEW", 3)
    monkeypatch.setattr(fleet, "_cached", None)
    before = {reading.mirror.name: reading for reading in olga.get("/mirrors/").context["readings"]}
    moved = company["models-eu"]
    Promotion.objects.create(mirror=moved, branch="main", to_commit="4be0" * 16, why="advanced", at=datetime.now(UTC))
    after = {reading.mirror.name: reading for reading in olga.get("/mirrors/").context["readings"]}
    assert {name for name in after if after[name].as_of > before[name].as_of} == {"models-eu"}


def test_all_mirrors_are_read_piece_by_piece_behind_a_requests_back(
    company: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "_cached", None)
    monkeypatch.setattr(fleet, "REST", 0)
    assert [reading.mirror.name for reading in fleet._read(2)] == [reading.mirror.name for reading in fleet._read()]


def test_who_waits_for_a_reading_lets_it_rest_no_more(monkeypatch: pytest.MonkeyPatch, company: Any) -> None:
    waited_for = mock.Mock()
    monkeypatch.setattr(fleet, "_cached", None)
    monkeypatch.setattr(fleet, "_waited_for", waited_for)
    fleet._read(2)
    rests = waited_for.wait.call_count
    assert rests > 1 and not waited_for.set.called
    monkeypatch.setattr(fleet, "_cached", None)
    fleet._read_or_wait()
    assert [name for name, _, _ in waited_for.method_calls[rests:]] == ["set", "clear"]
