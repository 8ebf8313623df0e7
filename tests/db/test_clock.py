"""Times are the database's: a process whose own clock is wrong writes the same ones."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import pytest

from db import clock

ROOT = Path(__file__).resolve().parent.parent.parent


def modules() -> list[Path]:
    """All that goes by the database's clock."""
    folders = ("db", "web", "jobs", "installations", "mirrors", "mirroring", "replication", "notifications", "console")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """A database on another machine, where it is the year 2000."""
    ask = mock.Mock(return_value=[(datetime(2000, 1, 1, tzinfo=UTC),)])
    monkeypatch.setattr(clock, "connection", mock.Mock(vendor="postgresql"))
    monkeypatch.setattr(clock, "fetch", ask)
    monkeypatch.setattr(clock, "_last_reading", None)
    return ask


def test_it_is_what_the_database_says(asked: mock.Mock) -> None:
    assert clock.now().year == 2000


def test_a_process_counts_on_by_itself_for_a_while(asked: mock.Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    began, passed = clock.now(), clock._seconds() + 5
    monkeypatch.setattr(clock, "_seconds", lambda: passed)
    assert timedelta(seconds=4) < clock.now() - began <= timedelta(seconds=6)
    assert asked.call_count == 1


def test_it_asks_again_soon(asked: mock.Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    clock.now()
    passed = clock._seconds() + clock.SURE_SECONDS + 1
    monkeypatch.setattr(clock, "_seconds", lambda: passed)
    asked.return_value = [(datetime(2001, 1, 1, tzinfo=UTC),)]
    assert clock.now().year == 2001


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_in_the_engine_asks_this_machine_for_the_time(path: Path) -> None:
    if path.name == "clock.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = ast.unparse(node.func)
            assert called not in ("datetime.now", "timezone.now", "time.time"), f"{path.name}: use db.clock.now()"
