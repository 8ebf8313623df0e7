"""Questions in plain SQL, for where rows of models would cost too much, and what a database gives for a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection


def fetch(query: str, given: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """The rows of a query; `given` goes with its %s."""
    with connection.cursor() as cursor:
        cursor.execute(query, list(given))
        return list(cursor.fetchall())


def moment(value: datetime | str) -> datetime:
    """A time as a database gives it: SQLite's are UTC without a word of it, and text where they were computed."""
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at if at.tzinfo else at.replace(tzinfo=UTC)
