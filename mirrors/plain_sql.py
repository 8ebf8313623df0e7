"""Questions in plain SQL, for where rows of models would cost too much, and what a database gives for a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from mirrors.models import Blocker, Candidate, Commit, Mirror, MirrorBranch, SourceBranch

TABLES = {
    "mirror": Mirror,
    "source": SourceBranch,
    "branch": MirrorBranch,
    "candidate": Candidate,
    "commit": Commit,
    "blocker": Blocker,
}
"""What a query calls them, in braces."""


def named(query: str, **more: object) -> str:
    """The query with the names of its tables, and whatever else stands in braces."""
    return query.format(**{name: model._meta.db_table for name, model in TABLES.items()}, **more)


def fetch(query: str, given: Sequence[object] = (), **more: object) -> list[tuple[Any, ...]]:
    """The rows of a query. `given` goes with its %s, `more` into its braces: nothing that somebody typed."""
    with connection.cursor() as cursor:
        cursor.execute(named(query, **more), list(given))
        return list(cursor.fetchall())


def moment(value: datetime | str) -> datetime:
    """A time as a database gives it: SQLite's are UTC without a word of it, and text where they were computed."""
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at if at.tzinfo else at.replace(tzinfo=UTC)
