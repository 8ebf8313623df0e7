"""Down a history by keys, which only fall on the way from child to parent."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Max

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
