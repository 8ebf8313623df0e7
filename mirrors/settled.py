"""Which branches are there more to say of than that they are up to date? The others are only counted.

A list of many mirrors has far more branches than it has lines, and nearly all of them are where they should be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import Count, Max, Model

from core.facts import Settled
from mirrors.models import Mirror, MirrorBranch, SourceBranch

# Each branch of a source is looked up at each of its mirrors by the index; only those that differ come back.
_OPEN = """
SELECT mirror.id, there.id, here.id
FROM {mirror} mirror
JOIN {source} there ON there.repository_id = mirror.source_id AND there.gone_at IS NULL
LEFT JOIN {branch} here ON here.mirror_id = mirror.id AND here.name = there.name
WHERE mirror.id IN ({mirrors}) AND (
    here.id IS NULL OR here.head <> there.head OR here.stray OR here.uncommitted
    OR here.head = '' OR there.missing_since IS NOT NULL
)
"""
_ONLY_HERE = """
SELECT here.id
FROM {branch} here
JOIN {mirror} mirror ON mirror.id = here.mirror_id
LEFT JOIN {source} there ON there.repository_id = mirror.source_id AND there.name = here.name AND there.gone_at IS NULL
WHERE here.mirror_id IN ({mirrors}) AND there.id IS NULL
"""


@dataclass(slots=True)
class Open:
    """Rows of branches that are not settled, by mirror and name, and how many are."""

    source: dict[int, dict[str, SourceBranch]] = field(default_factory=lambda: defaultdict(dict))
    here: dict[int, dict[str, MirrorBranch]] = field(default_factory=lambda: defaultdict(dict))
    settled: dict[int, Settled] = field(default_factory=dict)


def open_branches(mirrors: Sequence[Mirror]) -> Open:
    """For mirrors that follow every branch of their source."""
    found = Open()
    if not mirrors:
        return found
    rows = _rows(_OPEN, [mirror.pk for mirror in mirrors])
    live = _live(mirrors)
    open_there: dict[int, int] = defaultdict(int)
    open_here: dict[int, int] = defaultdict(int)
    for mirror, _, here in rows:
        open_there[mirror] += 1
        open_here[mirror] += here is not None
    for mirror in mirrors:
        number, name = live.get(mirror.source_id, (0, ""))
        found.settled[mirror.pk] = Settled(number=number - open_there[mirror.pk], name=name)
    more = _only_here(mirrors, {pk: its.number + open_here[pk] for pk, its in found.settled.items()})
    _load(found, mirrors, rows, more)
    return found


def _live(mirrors: Sequence[Mirror]) -> dict[int, tuple[int, str]]:
    """How many branches each source has, and the name of one: that of its only one, where it has no other."""
    rows = SourceBranch.objects.filter(repository__in={mirror.source_id for mirror in mirrors}, gone_at=None)
    counted = rows.order_by().values_list("repository_id").annotate(Count("pk"), Max("name"))
    return {repository: (number, name) for repository, number, name in counted}


def _only_here(mirrors: Sequence[Mirror], known: Mapping[int, int]) -> list[int]:
    """Keys of branches that the mirror has and its source has not; counts tell where there are such."""
    rows = MirrorBranch.objects.filter(mirror__in=mirrors).order_by().values_list("mirror_id").annotate(Count("pk"))
    odd = [mirror for mirror, number in rows if number > known[mirror]]
    return [pk for (pk,) in _rows(_ONLY_HERE, odd)]


def _load(found: Open, mirrors: Sequence[Mirror], rows: Sequence[tuple[Any, ...]], more: Sequence[int]) -> None:
    there = _by_key(SourceBranch, {key for _, key, _ in rows})
    for mirror, key, _ in rows:
        found.source[mirror][there[key].name] = there[key]
    for here in _by_key(MirrorBranch, {key for _, _, key in rows if key is not None} | set(more)).values():
        found.here[here.mirror_id][here.name] = here
    _add_gone(found, mirrors, more)


def _add_gone(found: Open, mirrors: Sequence[Mirror], more: Sequence[int]) -> None:
    """What was at the source once says since when it is gone."""
    if not more:
        return
    wanted = set(more)
    names = {(mirror, name) for mirror, its in found.here.items() for name, row in its.items() if row.pk in wanted}
    by_source: dict[int, list[int]] = defaultdict(list)
    for mirror in mirrors:
        by_source[mirror.source_id].append(mirror.pk)
    sources = {row.source_id for row in mirrors if row.pk in {mirror for mirror, _ in names}}
    gone = SourceBranch.objects.filter(repository__in=sources, name__in={name for _, name in names})
    for row in gone.exclude(gone_at=None):
        for mirror in by_source[row.repository_id]:
            if (mirror, row.name) in names:
                found.source[mirror][row.name] = row


def _by_key(model: type[Model], keys: set[int]) -> dict[int, Any]:
    """Rows by their keys, in one query however many there are."""
    if not keys:
        return {}
    listed = ", ".join(f"{key:d}" for key in sorted(keys))
    rows: Any = model.objects.raw(f"SELECT * FROM {model._meta.db_table} WHERE id IN ({listed})")  # type: ignore[attr-defined]
    return {row.pk: row for row in rows}


def _rows(query: str, mirrors: Sequence[int]) -> list[tuple[Any, ...]]:
    if not mirrors:
        return []
    tables = {
        "mirror": Mirror._meta.db_table,
        "source": SourceBranch._meta.db_table,
        "branch": MirrorBranch._meta.db_table,
    }
    with connection.cursor() as cursor:
        cursor.execute(query.format(mirrors=", ".join(f"{pk:d}" for pk in mirrors), **tables))
        return list(cursor.fetchall())
