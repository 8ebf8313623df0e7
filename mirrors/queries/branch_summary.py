"""Which branches have to be told of one by one? The others are only counted.

A list of many mirrors has far more branches than it has lines, and nearly all of them are where they should be. Where
many are behind, the few of a mirror that have waited longest speak for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Max, Model

from core.mirroring.facts import Counted
from core.mirroring.promotion import UNKNOWN
from mirrors.models import Mirror, MirrorBranch, SourceBranch
from mirrors.queries.tables import fetch

# Each branch of a source is looked up at each of its mirrors by the index; only those that differ come back.
_OPEN = """
SELECT mirror.id, source_branch.id, mirror_branch.id, mirror_branch.stray, mirror_branch.uncommitted,
    mirror_branch.misplaced OR NOT mirror_branch.proven OR mirror_branch.unlooked_since IS NOT NULL,
    source_branch.missing_since, source_branch.position, mirror_branch.position,
    COALESCE(next.seen_at, source_branch.unread_since),
    CASE WHEN source_branch.unread_head = '' OR mirror_branch.head = source_branch.unread_head THEN 0 ELSE 1 END
FROM {mirror} mirror
JOIN {source} source_branch ON source_branch.repository_id = mirror.source_id AND source_branch.gone_at IS NULL
LEFT JOIN {branch} mirror_branch ON mirror_branch.mirror_id = mirror.id AND mirror_branch.name = source_branch.name
LEFT JOIN {candidate} next ON next.branch_id = source_branch.id
    AND next.position = CASE WHEN mirror_branch.id IS NULL OR mirror_branch.stray OR mirror_branch.position < 0 THEN 0
        ELSE mirror_branch.position + 1 END
WHERE mirror.id IN ({mirrors}) AND (
    mirror_branch.id IS NULL OR mirror_branch.head <> source_branch.head OR mirror_branch.stray
    OR mirror_branch.uncommitted OR mirror_branch.head = '' OR NOT mirror_branch.proven OR mirror_branch.misplaced
    OR mirror_branch.unlooked_since IS NOT NULL OR source_branch.missing_since IS NOT NULL
    OR source_branch.unread_head <> '' OR source_branch.position = {unknown}
)
"""
_ONLY_AT_MIRROR = """
SELECT mirror_branch.id
FROM {branch} mirror_branch
JOIN {mirror} mirror ON mirror.id = mirror_branch.mirror_id
LEFT JOIN {source} source_branch ON source_branch.repository_id = mirror.source_id
    AND source_branch.name = mirror_branch.name AND source_branch.gone_at IS NULL
WHERE mirror_branch.mirror_id IN ({mirrors}) AND source_branch.id IS NULL
"""


SHOWN = 5
"""So many branches of a mirror that are behind are told of."""


@dataclass(frozen=True, slots=True)
class Row:
    """A branch that differs: keys of its mirror and of its rows there and here, and how far it is."""

    mirror: int
    source_branch: int
    mirror_branch: int | None
    stray: bool
    uncommitted: bool
    doubtful: bool
    missing_since: Any
    newest: int
    reached: int | None
    waits_since: Any
    unread: int

    @property
    def behind(self) -> bool:
        """Whether there is nothing else with it."""
        return not (self.stray or self.uncommitted or self.doubtful or self.missing_since)

    @property
    def pending(self) -> int:
        """How many candidates it is behind; a head whose history can't be read counts as one."""
        return self.newest - max(UNKNOWN, UNKNOWN if self.reached is None else self.reached) + self.unread

    @property
    def age(self) -> tuple[bool, Any]:
        """Sorts those that have waited longest first, and before them those of which that isn't known."""
        return self.waits_since is not None, self.waits_since or self.source_branch


@dataclass(slots=True)
class OpenBranches:
    """Rows of the branches to tell of, by mirror and name, and how many others there are."""

    source: dict[int, dict[str, SourceBranch]] = field(default_factory=lambda: defaultdict(dict))
    mirror_branches: dict[int, dict[str, MirrorBranch]] = field(default_factory=lambda: defaultdict(dict))
    counted: dict[int, Counted] = field(default_factory=dict)


def open_branches(mirrors: Sequence[Mirror]) -> OpenBranches:
    """For mirrors that follow every branch of their source."""
    branches = OpenBranches()
    if not mirrors:
        return branches
    rows: dict[int, list[Row]] = defaultdict(list)
    for values in _rows(_OPEN, [mirror.pk for mirror in mirrors]):
        rows[values[0]].append(Row(*values))
    live, shown = _live(mirrors), []
    both: dict[int, int] = {}
    for mirror in mirrors:
        differing = rows[mirror.pk]
        number, name = live.get(mirror.source_id, (0, ""))
        behind = sorted((row for row in differing if row.behind), key=lambda row: row.age)
        shown += [row for row in differing if not row.behind] + behind[:SHOWN]
        rest = behind[SHOWN:]
        pending = sum(row.pending for row in rest)
        branches.counted[mirror.pk] = Counted(
            settled=number - len(differing), name=name, behind=len(rest), pending=pending
        )
        both[mirror.pk] = number - sum(row.mirror_branch is None for row in differing)
    _load(branches, mirrors, shown, _only_at_mirror(mirrors, both))
    return branches


def _live(mirrors: Sequence[Mirror]) -> dict[int, tuple[int, str]]:
    """How many branches each source has, and the name of one: that of its only one, where it has no other."""
    rows = SourceBranch.objects.filter(repository__in={mirror.source_id for mirror in mirrors}, gone_at=None)
    counted = rows.order_by().values_list("repository_id").annotate(Count("pk"), Max("name"))
    return {repository: (number, name) for repository, number, name in counted}


def _only_at_mirror(mirrors: Sequence[Mirror], known: Mapping[int, int]) -> list[int]:
    """Keys of branches that the mirror has and its source has not; counts tell where there are such."""
    rows = MirrorBranch.objects.filter(mirror__in=mirrors).order_by().values_list("mirror_id").annotate(Count("pk"))
    odd = [mirror for mirror, number in rows if number > known[mirror]]
    return [pk for (pk,) in _rows(_ONLY_AT_MIRROR, odd)]


def _load(branches: OpenBranches, mirrors: Sequence[Mirror], rows: Sequence[Row], more: Sequence[int]) -> None:
    source_branches = _by_key(SourceBranch, {row.source_branch for row in rows})
    for row in rows:
        branches.source[row.mirror][source_branches[row.source_branch].name] = source_branches[row.source_branch]
    keys = {row.mirror_branch for row in rows if row.mirror_branch is not None} | set(more)
    for branch in _by_key(MirrorBranch, keys).values():
        branches.mirror_branches[branch.mirror_id][branch.name] = branch
    _add_deleted(branches, mirrors, more)


def _add_deleted(branches: OpenBranches, mirrors: Sequence[Mirror], more: Sequence[int]) -> None:
    """What was at the source once says since when it is gone."""
    if not more:
        return
    wanted = set(more)
    names = {
        (mirror, name)
        for mirror, by_name in branches.mirror_branches.items()
        for name, row in by_name.items()
        if row.pk in wanted
    }
    by_source: dict[int, list[int]] = defaultdict(list)
    for mirror in mirrors:
        by_source[mirror.source_id].append(mirror.pk)
    sources = {row.source_id for row in mirrors if row.pk in {mirror for mirror, _ in names}}
    deleted = SourceBranch.objects.filter(repository__in=sources, name__in={name for _, name in names})
    for row in deleted.exclude(gone_at=None):
        for mirror in by_source[row.repository_id]:
            if (mirror, row.name) in names:
                branches.source[mirror][row.name] = row


def _by_key(model: type[Model], keys: set[int]) -> dict[int, Any]:
    """Rows by their keys, in one query however many there are."""
    if not keys:
        return {}
    listed = ", ".join(f"{key:d}" for key in sorted(keys))
    rows: Any = model.objects.raw(f"SELECT * FROM {model._meta.db_table} WHERE id IN ({listed})")  # type: ignore[attr-defined]
    return {row.pk: row for row in rows}


def _rows(query: str, mirrors: Sequence[int]) -> list[tuple[Any, ...]]:
    keys = ", ".join(f"{pk:d}" for pk in mirrors)
    return fetch(query, mirrors=keys, unknown=UNKNOWN) if mirrors else []
