"""Down a history by keys, which only fall on the way from child to parent."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeVar

from django.db.models import Max

from mirrors.models import Repository

T = TypeVar("T")

FIRST_WINDOW, LAST_WINDOW = 20, 1000
"""Rows that are read at once on the way down a history: most moves are short."""
FEW = 500


def few(some: Collection[T]) -> Iterator[list[T]]:
    """So many at a time as fit into one query."""
    ordered = sorted(some)  # type: ignore[type-var]
    return (ordered[start : start + FEW] for start in range(0, len(ordered), FEW))


def highest_key(source: Repository, shas: Collection[str], top: int | None) -> int | None:
    """The largest key of some commits, to pass over what lies above; with many of them it isn't asked for: `top` will
    do."""
    if len(shas) > FEW and top is not None:
        return top
    keys = (source.commits.filter(sha__in=some).aggregate(key=Max("pk"))["key"] for some in few(shas))
    return max((key for key in keys if key is not None), default=None)
