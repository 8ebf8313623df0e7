"""A process waits for the tables, says so once, and goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from django.db import DatabaseError

from db import tables

WAITING = "the tables are not there yet, or are an older version's: waiting for the migrations"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[object]]:
    """Makes each look at the database find what comes next: how many migrations are missing, or an error. Gives the
    list of what was not found yet."""
    monkeypatch.setattr(tables, "LOOK_SECONDS", 0.0)

    def find(*found: int | Exception) -> list[object]:
        left = list(found)

        def look() -> int:
            one = left.pop(0)
            if isinstance(one, Exception):
                raise one
            return one

        monkeypatch.setattr(tables, "_pending", look)
        return left

    return find


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[tuple[str, str]]]]:
    """What was logged so far: level and text."""
    caplog.set_level(logging.INFO, "lakemirror.tables")
    yield lambda: [(one.levelname, one.message) for one in caplog.records]


def never(seconds: float) -> bool:
    return False


@pytest.mark.django_db
def test_it_waits_until_they_are_there_and_says_both_once(
    looks: Callable[..., list[object]], said: Callable[[], list[tuple[str, str]]]
) -> None:
    left = looks(70, 70, 12, 0)
    assert tables.Watch().wait(never)
    assert said() == [("INFO", WAITING), ("INFO", "the tables are there")]
    assert left == []


@pytest.mark.django_db
def test_tables_that_are_there_are_no_news_and_are_looked_at_once(
    looks: Callable[..., list[object]], said: Callable[[], list[tuple[str, str]]]
) -> None:
    left, watch = looks(0, 70), tables.Watch()
    assert watch.wait(never) and watch.wait(never)
    assert said() == [] and left == [70]


@pytest.mark.django_db
def test_a_database_that_does_not_answer_is_waited_for_too(
    looks: Callable[..., list[object]], said: Callable[[], list[tuple[str, str]]]
) -> None:
    looks(DatabaseError("no route\n"), DatabaseError("no route\n"), 0)
    assert tables.Watch().wait(never)
    away = "the database doesn't answer: no route; trying again until it does"
    assert said() == [("WARNING", away), ("INFO", "the tables are there")]


@pytest.mark.django_db
def test_who_is_told_to_stop_meanwhile_stops(looks: Callable[..., list[object]]) -> None:
    left, asked = looks(70, 70, 70), []

    def at_the_second(seconds: float) -> bool:
        asked.append(seconds)
        return len(asked) == 2

    assert not tables.Watch().wait(at_the_second)
    assert left == [70]


def test_what_is_missing_is_not_looked_for_by_every_request(
    looks: Callable[..., list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    left, watch = looks(70, 0), tables.Watch()
    monkeypatch.setattr(tables, "LOOK_SECONDS", 60.0)
    assert [watch.missing(), watch.missing()] == [70, 70]
    assert left == [0]
