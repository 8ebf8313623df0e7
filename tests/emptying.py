"""Empties the tables after a test that commits.

Django's flush looks the tables up each time and truncates them: 40 ms with SQLite and 300 ms with PostgreSQL, after
each of some thousand tests, of which few fill more than ten tables.
"""

from __future__ import annotations

import functools
from typing import Any

from django.db import connection, transaction


@functools.cache
def _tables() -> list[str]:
    """Those of models; Django's own book of migrations is none of them."""
    return connection.introspection.django_table_names(only_existing=True, include_views=False)


def empty_tables(_: Any = None) -> None:
    """References are compared at the end of a transaction only, so that the order doesn't matter. Keys go on."""
    name = connection.ops.quote_name
    with transaction.atomic(), connection.cursor() as cursor:
        for table in _filled(cursor):
            cursor.execute(f"DELETE FROM {name(table)}")


def _filled(cursor: Any) -> list[str]:
    """The tables that have a row, by one statement."""
    name = connection.ops.quote_name
    asked = " UNION ALL ".join(
        f"SELECT {number} WHERE EXISTS (SELECT 1 FROM {name(table)})" for number, table in enumerate(_tables())
    )
    cursor.execute(asked)
    return [_tables()[number] for (number,) in cursor.fetchall()]
