"""Who comes before the tables are there is told so, and by nothing else than that."""

from __future__ import annotations

import logging

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from db import tables
from lakemirror_site import health

API = "/service/replication/v1/repositories/lake/mirrors"
KEY = {"HTTP_AUTHORIZATION": "Basic QUtJQTpzZWNyZXQ="}


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> list[int | Exception]:
    """How many migrations are not applied, as each look finds them: the only item, which a test may exchange."""
    found: list[int | Exception] = [70]

    def look() -> int:
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    monkeypatch.setattr(tables, "_pending", look)
    monkeypatch.setattr(tables, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(tables, "watch", tables.Watch())
    return found


@pytest.mark.usefixtures("missing")
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", API), ("POST", API), ("GET", "/api/v1/auth/users"), ("POST", "/hooks/lakefs/eu")],
)
def test_programs_are_told_to_come_again(client: Client, method: str, path: str) -> None:
    answer = client.generic(method, path, **KEY)
    assert (answer.status_code, answer["Retry-After"]) == (503, "3")
    assert answer.json() == {"message": health.NOT_YET}


@pytest.mark.usefixtures("missing")
@pytest.mark.parametrize("path", ["/", "/login/", "/mirrors", "/nowhere"])
def test_people_get_a_page_that_loads_itself_again(client: Client, path: str) -> None:
    answer = client.get(path, headers={"accept": "text/html"})
    assert (answer.status_code, answer["Retry-After"], answer["Refresh"]) == (503, "3", "3")
    page = answer.content.decode()
    assert "The database is being prepared for this version of LakeMirror" in page
    assert "that LakeMirror depends on" not in page and 'href="/static/lakemirror.css"' in page


@pytest.mark.usefixtures("missing")
def test_a_form_that_was_sent_is_not_sent_again(client: Client) -> None:
    answer = client.post("/login/", {"username": "olga"}, headers={"accept": "text/html"})
    assert answer.status_code == 503 and "Refresh" not in answer


@pytest.mark.django_db
def test_nothing_is_asked_of_the_tables(client: Client, missing: list[int | Exception]) -> None:
    client.cookies["lakemirror_session"] = "of yesterday"
    with CaptureQueriesContext(connection) as asked:
        for path in (API, "/", "/healthz", "/version"):
            client.get(path, **KEY)
    assert [query["sql"] for query in asked.captured_queries] == []


@pytest.mark.django_db
def test_probes_get_their_answers(client: Client, missing: list[int | Exception]) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/version").status_code == 200
    answer = client.get("/readyz")
    told = {"status": "unavailable", "message": "70 migrations are not applied: run manage.py migrate"}
    assert (answer.status_code, answer.json()) == (503, told)


@pytest.mark.django_db
def test_once_they_are_there_everything_answers(
    client: Client, missing: list[int | Exception], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lakemirror.tables")
    assert [client.get("/login/").status_code for _ in range(3)] == [503] * 3
    missing[0] = 0
    assert [client.get(path).status_code for path in ("/login/", "/readyz", API)] == [200, 200, 401]
    texts = [one.message for one in caplog.records if one.name == "lakemirror.tables"]
    assert len(texts) == 2 and texts[-1] == "the tables are there"
    missing[0] = 70  # is not looked for any more
    assert client.get("/login/").status_code == 200


@pytest.mark.django_db
def test_a_database_that_is_away_is_told_by_what_needs_it(
    client: Client, missing: list[int | Exception], caplog: pytest.LogCaptureFixture
) -> None:
    missing[0] = DatabaseError("no route")
    assert client.get("/login/").status_code == 200, "needs nothing of it"
    answer = client.get("/readyz")
    told = "the database doesn't answer; see the log of this process"
    assert (answer.status_code, answer.json()["message"]) == (503, told)
    assert "the database doesn't answer: no route" in caplog.text
