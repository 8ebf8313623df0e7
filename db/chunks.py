"""So many at a time as fit into one query, or into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from django.db.models import QuerySet

T = TypeVar("T")

CHUNK = 500
ROWS = 2000


def chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """Items in their order, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


def rows_in_chunks(rows: QuerySet[Any]) -> Iterator[Any]:
    """All rows in order of their keys, however many, without holding a cursor or all of them."""
    last = 0
    while True:
        chunk = list(rows.filter(pk__gt=last).order_by("pk")[:ROWS])
        yield from chunk
        if len(chunk) < ROWS:
            return
        last = chunk[-1].pk
