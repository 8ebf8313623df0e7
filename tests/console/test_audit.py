"""Everything that was done and refused, on one page and by the API: found by any filter, and quickly."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit import chain, rounds, search, strangers, verify
from audit.models import AuditEvent
from db import clock
from rbac import services
from rbac.models import User
from tests.api import Api
from tests.mirrors.factories import make_mirror, make_repository
from tests.mirrors.page_text import text

pytestmark = pytest.mark.django_db

AUDIT = "/service/replication/v1/audit"
LAKE = "arn:lakefs:fs:::repository/lake"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def events(owner: User, teammate: User) -> list[AuditEvent]:
    """Twelve, an hour apart: three actors, two resources, each fourth one refused."""
    made = []
    for n in range(12):
        one = services.audit(
            actor=("olga", "tom", "system:tests")[n % 3],
            right=(("fs:MirrorRepository", LAKE), ("auth:CreateUser", "arn:lakefs:auth:::user/ann"))[n % 2],
            verb="change",
            after={"n": n, "note": "Needle" if n == 5 else "hay"},
            reason="=because" if n == 7 else "",
        )
        QuerySet(model=AuditEvent).filter(pk=one.pk).update(at=BEGIN + timedelta(hours=n), refused=n % 4 == 0)
        made.append(one)
    QuerySet(model=AuditEvent).exclude(pk__in=[one.pk for one in made]).delete()
    return made


def get(api: Api, address: str) -> Any:
    return api.client.get(address, headers=api.headers)


def ask(api: Api, query: str) -> list[int]:
    """Which of the twelve."""
    return [row["after"]["n"] for row in get(api, f"{AUDIT}?{query}").json()["results"]]


def test_events_are_found_by_each_filter_and_by_several(api: Api, events: list[AuditEvent]) -> None:
    assert ask(api, "") == list(range(11, -1, -1))
    assert ask(api, "actor=tom") == [10, 7, 4, 1]
    assert ask(api, f"resource={LAKE}&actor=tom") == [10, 4]
    assert ask(api, "action=auth:CreateUser&refused=true") == []
    assert ask(api, "action=auth:*&actor=olga") == [9, 3]
    assert ask(api, "resource=arn:lakefs:auth:*&amount=2") == [11, 9]
    assert ask(api, "refused=true") == [8, 4, 0]
    assert ask(api, "text=needle") == [5] and ask(api, "text=ARN:lakefs:auth&actor=tom") == [7, 1]
    assert ask(api, "from=2026-01-01T03:00:00Z&to=2026-01-01T06:00:00%2B01:00") == [4, 3]
    assert ask(api, "to=2025-12-31") == [] and len(ask(api, "to=2026-01-01")) == 12


@pytest.mark.parametrize(
    "wrong", ["from=x", "to=2026-13-01", "refused=yes", "after=9", f"text={'x' * 201}", "amount=0", "format=xml"]
)
def test_a_filter_that_is_wrong_is_named(api: Api, olga: Client, events: list[AuditEvent], wrong: str) -> None:
    answer = get(api, f"{AUDIT}?{wrong}")
    name = wrong.partition("=")[0]
    assert answer.status_code == 400 and answer.json()["message"].startswith(f"{name}: ")
    if name not in ("amount", "format"):
        page = olga.get(f"/audit/?{wrong}")
        assert page.status_code == 400 and f"{name.capitalize()}: " in text(page)


@pytest.mark.parametrize("query", ["", "actor=tom", "text=hay", "action=auth:*", "refused=true&actor=olga"])
def test_pages_leave_nothing_out_also_where_a_look_ends_before_its_page_is_full(
    api: Api, events: list[AuditEvent], monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    whole = ask(api, query)
    monkeypatch.setattr(search, "LOOKED", 3)
    found, after, pages = [], "", 0
    while pages == 0 or after:
        page = get(api, f"{AUDIT}?{query}&amount=2&after={after}").json()
        found += [row["after"]["n"] for row in page["results"]]
        after, pages = page["pagination"]["next_offset"], pages + 1
        assert page["pagination"]["has_more"] == bool(after)
    assert found == whole


def test_all_of_them_are_a_file(api: Api, events: list[AuditEvent]) -> None:
    answer = get(api, f"{AUDIT}?format=csv&actor=tom")
    rows = list(csv.DictReader(StringIO(b"".join(answer.streaming_content).decode())))
    assert [row["action"] for row in rows] == ["fs:MirrorRepository", "auth:CreateUser"] * 2
    assert rows[1]["reason"] == "'=because" and rows[0]["after"] == '{"n": 10, "note": "hay"}'


def test_the_page_and_the_api_tell_how_the_chain_stands_and_what_strangers_tried(
    api: Api, olga: Client, events: list[AuditEvent], client: Client
) -> None:
    assert client.get(AUDIT).status_code == 401
    told = get(api, AUDIT).json()
    assert told["chain"]["waiting"] == 12 and told["chain"]["checked_at"] is None
    assert [(one["kind"], one["times"]) for one in told["strangers"]] == [("no-credentials", 1)]
    rounds.look_round()
    page = text(olga.get("/audit/"))
    assert "Audit chain verified up to event 12, at" in page and chain.head().digest[:16] in page
    assert "No credentials 127.0.0.1 1" in page
    assert "n: 11" in page and "reason: =because" in page and "None" not in page
    QuerySet(model=AuditEvent).filter(number=4).update(reason="x")
    services.audit(actor="olga", right=("x", "*"), verb="change")
    verify.note(verify.verify())
    assert "The audit chain is broken: event 4" in text(olga.get("/audit/"))
    assert "event 4" in get(api, AUDIT).json()["chain"]["wrong"]


def test_who_may_not_see_it_is_refused_and_has_no_link(teammate: User, client: Client, olga: Client) -> None:
    client.force_login(teammate)
    assert 'href="/audit/"' in olga.get("/jobs/").content.decode()
    assert 'href="/audit/"' not in client.get("/jobs/").content.decode()
    assert client.get("/audit/").status_code == 403
    event = AuditEvent.objects.get(refused=True)
    assert (event.actor, event.action) == ("tom", "auth:ListAuditEvents")


def test_a_click_that_is_refused_with_others_is_told_too(teammate: User, client: Client) -> None:
    make_mirror("lake-eu", make_repository(now=clock.now()), now=clock.now())
    client.force_login(teammate)
    assert client.post("/mirrors/_change/", {"verb": "pause", "mirror": "lake-eu"}).status_code == 302
    event = AuditEvent.objects.get(refused=True)
    assert (event.actor, event.action, event.arn) == ("tom", "fs:OperateMirror", LAKE)


def test_the_number_of_queries_is_the_same_for_few_and_many(olga: Client, events: list[AuditEvent]) -> None:
    def asked(query: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert olga.get(f"/audit/?{query}").status_code == 200
        return len(captured)

    few = [asked("actor=tom"), asked("text=hay&actor=tom")]
    for n in range(60):
        services.audit(actor="tom", right=(f"x:{n}", f"arn:{n}"), verb="change", after={"n": n, "note": "hay"})
        strangers.refused("wrong-key")
    strangers.write()
    assert asked("actor=tom") == few[0] and asked("text=hay&actor=tom") <= few[1]


def test_days_that_people_ask_for_are_a_click_away(olga: Client) -> None:
    page = olga.get("/audit/?actor=olga")
    today = clock.now().date()
    links = {word: address for word, address, _ in page.context["periods"]}
    assert links["Today"] == f"?actor=olga&from={today}&to={today}"
    assert links["Yesterday"] == f"?actor=olga&from={today - timedelta(1)}&to={today - timedelta(1)}"
    links = {word: address for word, address, _ in olga.get("/audit/").context["periods"]}
    chosen = olga.get(f"/audit/{links['Last 7 days']}")
    assert [word for word, _, is_set in chosen.context["periods"] if is_set] == ["Last 7 days"]
    assert len(chosen.context["events"]) > 0
    assert olga.get(f"/audit/{links['Yesterday']}").context["events"] == []
