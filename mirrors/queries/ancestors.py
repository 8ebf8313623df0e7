"""Down a history by keys, which only fall on the way from child to parent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from django.db.models import Max, QuerySet

from db.chunks import CHUNK, chunks
from mirrors.models import Repository

FIRST_WINDOW, LAST_WINDOW = 20, 1000
"""Rows that are read at once on the way down a history: most moves are short."""


def highest_key(source: Repository, shas: Collection[str], top: int | None) -> int | None:
    """The largest key of some commits, to pass over what lies above; with many of them it isn't asked for: `top` will
    do."""
    if len(shas) > CHUNK and top is not None:
        return top
    keys = (source.commits.filter(sha__in=some).aggregate(key=Max("pk"))["key"] for some in chunks(sorted(shas)))
    return max((key for key in keys if key is not None), default=None)


def windows(
    source: Repository, wanted: Collection[str], rows: QuerySet[Any], key: str = "pk"
) -> Iterator[list[tuple[Any, ...]]]:
    """Rows, each with its key first, from the highest wanted commit on down, some at a time, as long as commits are
    wanted: the caller takes out those that he met and adds others. What lies between few of them is passed over."""
    size, top = FIRST_WINDOW, highest_key(source, wanted, None)
    while wanted and top is not None:
        lines = list(rows.filter(**{f"{key}__lte": top}).order_by(f"-{key}")[:size])
        if not lines:
            return
        yield lines
        top, size = highest_key(source, wanted, lines[-1][0] - 1), min(4 * size, LAST_WINDOW)


def walk_down(source: Repository, wanted: set[str]) -> Iterator[tuple[int, list[str]]]:
    """Key and parents of the wanted commits, children first. Each is taken out of `wanted`; the caller adds those of
    its parents that he wants as well before the next one."""
    for lines in windows(source, wanted, source.commits.values_list("pk", "sha", "parents")):
        for key, sha, parents in lines:
            if sha in wanted:
                wanted.discard(sha)
                yield key, parents


class ShownHistory:
    """The commits that some heads lead to, read as far down as was asked for. What the source does not know of the
    heads leads nowhere."""

    def __init__(self, source: Repository, heads: Iterable[str]) -> None:
        self._source, self._keys, self._ahead = source, set[int](), set(heads)
        self._rows = walk_down(source, self._ahead)
        self._next: tuple[int, list[str]] | None = None
        self._begun = False

    def beyond(self, sha: str) -> list[int]:
        """Keys of a commit and its ancestors to which none of the heads leads, parents first."""
        keys, wanted = [], {sha}
        for key, parents in walk_down(self._source, wanted):
            self._read_down_to(key)
            if key not in self._keys:
                keys.append(key)
                wanted.update(parents)
        return keys[::-1]

    def add(self, keys: Iterable[int]) -> None:
        """Count these as led to as well."""
        self._keys.update(keys)

    def _read_down_to(self, lowest: int) -> None:
        if not self._begun:
            self._begun, self._next = True, next(self._rows, None)
        while self._next and self._next[0] >= lowest:
            key, parents = self._next
            self._keys.add(key)
            self._ahead.update(parents)
            self._next = next(self._rows, None)
