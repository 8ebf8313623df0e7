"""The tables of mirrors in plain SQL, under the names that queries call them by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db import raw_sql
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
    return raw_sql.fetch(named(query, **more), given)
