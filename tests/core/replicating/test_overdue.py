"""When the comparing of places is late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.replicating.overdue import comparison_overdue

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def told(**changes: Any) -> str:
    facts: dict[str, Any] = {
        "created_at": NOW - 9 * DAY,
        "began_at": NOW - 10 * MINUTE,
        "ended_at": NOW - 5 * MINUTE,
        "going_since": None,
        "every": 5 * MINUTE,
    }
    return comparison_overdue(NOW, **facts | changes)


@pytest.mark.parametrize(
    ("changes", "late"),
    [
        ({}, False),
        ({"began_at": NOW - 2 * HOUR, "ended_at": NOW - 66 * MINUTE}, True),
        ({"began_at": NOW - 2 * HOUR, "ended_at": NOW - 64 * MINUTE}, False),
        ({"began_at": NOW - 2 * DAY, "ended_at": NOW - 2 * DAY + MINUTE, "going_since": NOW - HOUR}, False),
        ({"began_at": NOW - 2 * DAY, "ended_at": NOW - 2 * DAY + MINUTE, "going_since": NOW - 67 * MINUTE}, True),
        ({"began_at": NOW - 2 * DAY, "ended_at": NOW - 2 * DAY + 8 * HOUR, "going_since": NOW - 16 * HOUR}, False),
        ({"began_at": None, "ended_at": None, "created_at": NOW - 23 * HOUR}, False),
        ({"began_at": None, "ended_at": None, "created_at": NOW - DAY}, True),
    ],
)
def test_it_is_late_when_it_takes_much_longer_than_it_should(changes: dict[str, Any], late: bool) -> None:
    assert bool(told(**changes)) is late


def test_it_says_how_long_ago() -> None:
    assert told(ended_at=NOW - 3 * HOUR) == "the places were last compared 3 h ago, not every 5 min"
