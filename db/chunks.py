"""So many at a time as fit into one query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

FEW = 500
CHUNK = 500


def few(some: Collection[T]) -> Iterator[list[T]]:
    """Some things in order, so many at a time as fit into one query."""
    ordered = sorted(some)  # type: ignore[type-var]
    return (ordered[start : start + FEW] for start in range(0, len(ordered), FEW))


def chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """Items, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
