"""Where do the branches of mirrors stand, beside those of their sources?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.mirroring.promotion import UNKNOWN
from db.raw_sql import moment
from mirrors.models import Mirror, MirrorBranch, SourceBranch
from mirrors.queries.branch_summary import OpenBranches
from mirrors.queries.candidates import Pending, Spots, count_unread, pending_of, waiting_since
from mirrors.queries.missing import Key
from mirrors.queries.tables import fetch

Names = Mapping[str, SourceBranch]


@dataclass(frozen=True, slots=True)
class BranchPosition:
    """A branch at the source and at one mirror; `reached` is the position that the mirror has, -1 for none."""

    key: Key
    source: SourceBranch | None
    mirror: MirrorBranch | None
    reached: int
    default: bool
    selected: bool

    @property
    def behind(self) -> bool:
        live = self.source is not None and self.source.gone_at is None
        return live and self.selected and self.reached < self.source.position

    @property
    def unread_head(self) -> str:
        """Where the source's branch is, if that history can't be read and the mirror doesn't show it; else ""."""
        source, mirror = self.source, self.mirror
        if source is None or source.gone_at is not None or not self.selected:
            return ""
        return "" if mirror and mirror.head == source.unread_head else source.unread_head

    @property
    def unproven(self) -> bool:
        """Whether the mirror's branch shows what is not proven whole there now."""
        mirror = self.mirror
        return mirror is not None and bool(mirror.head) and not mirror.stray and not mirror.proven

    @property
    def unseen(self) -> bool:
        """Whether nobody has looked at the source's branch since the books were rebuilt."""
        source = self.source
        if source is None or source.gone_at is not None or not self.selected:
            return False
        return source.position == UNKNOWN and not source.unread_head

    @property
    def inferred(self) -> bool:
        """Whether the mirror's branch shows what nobody has seen at the source's."""
        return self.behind and self.mirror is not None and self.mirror.position < UNKNOWN


# --- branch by branch -----------------------------------------------------------------------------------------------


def positions_of(mirror: Mirror) -> list[BranchPosition]:
    """Every branch of a mirror, or selected of its source."""
    return positions_at([mirror], source_branches([mirror]), OpenBranches())


def first_pending(mirror: Mirror, places: Sequence[BranchPosition]) -> dict[str, Pending]:
    """The oldest commit that a mirror's branch has not reached; by branch, of those behind."""
    rows = pending_of(spots_of([place for place in places if place.behind]), few=1)
    first = {name: row[0] for (_, name), row in rows.items()}
    for place in places:
        if place.unread_head and place.source and place.source.unread_since:
            name = place.key[1]
            first[name] = count_unread(first.get(name), place.unread_head, place.source.unread_since)
    return {name: waiting_since(row, mirror.created_at) for name, row in first.items()}


def source_branches(mirrors: Sequence[Mirror]) -> dict[int, dict[str, SourceBranch]]:
    """Branches of the mirrors' sources, by the source's key and by name."""
    source: dict[int, dict[str, SourceBranch]] = defaultdict(dict)
    for row in SourceBranch.objects.filter(repository__in={mirror.source_id for mirror in mirrors}):
        source[row.repository_id][row.name] = row
    return source


def positions_at(mirrors: Sequence[Mirror], source: Mapping[int, Names], opened: OpenBranches) -> list[BranchPosition]:
    """Branches of each mirror, or selected of its source, by name; without those that are gone at both, or settled."""
    mirror_branches: dict[int, dict[str, MirrorBranch]] = defaultdict(dict)
    for row in MirrorBranch.objects.filter(
        mirror__in=[mirror for mirror in mirrors if mirror.pk not in opened.counted]
    ):
        mirror_branches[row.mirror_id][row.name] = row
    places = []
    for mirror in mirrors:
        if mirror.pk in opened.counted:
            places += _of_mirror(mirror, opened.source[mirror.pk], opened.mirror_branches[mirror.pk])
        else:
            places += _of_mirror(mirror, source[mirror.source_id], mirror_branches[mirror.pk])
    return places


def _of_mirror(mirror: Mirror, source: Names, mirror_branches: Mapping[str, MirrorBranch]) -> list[BranchPosition]:
    chosen = mirror.selection
    live = {name for name, row in source.items() if row.gone_at is None and name in chosen}
    places = []
    for name in sorted(live | mirror_branches.keys()):
        source_branch, mirror_branch = source.get(name), mirror_branches.get(name)
        key, reached = (mirror.pk, name), _reached(source_branch, mirror_branch)
        default = name == mirror.source.default_branch
        places.append(BranchPosition(key, source_branch, mirror_branch, reached, default, name in chosen))
    return places


def _reached(source: SourceBranch | None, mirror: MirrorBranch | None) -> int:
    """A mirror whose branch reads the source's head has reached the newest candidate, whatever we noted. One that is
    not where we put it has not even reached that."""
    if source is None or mirror is None or mirror.stray:
        return -1
    if mirror.misplaced and mirror.head != source.head:
        return max(mirror.position - 1, UNKNOWN)
    return source.position if mirror.head == source.head else max(mirror.position, UNKNOWN)


def spots_of(places: Sequence[BranchPosition]) -> Spots:
    """As the queries for commits take them; those that the source has, or had."""
    return {place.key: (place.source.pk, place.reached) for place in places if place.source}


# --- of very many, in plain values ----------------------------------------------------------------------------------

_ALL = """
SELECT mirror.id, source_branch.name, source_branch.id, source_branch.position, CASE
        WHEN mirror_branch.id IS NULL OR mirror_branch.stray THEN {unknown}
        WHEN mirror_branch.head = source_branch.head THEN source_branch.position
        WHEN mirror_branch.position < {unknown} THEN {unknown}
        WHEN mirror_branch.misplaced AND mirror_branch.position > {unknown} THEN mirror_branch.position - 1
        ELSE mirror_branch.position
    END, CASE WHEN mirror_branch.proven AND mirror_branch.head <> '' AND NOT mirror_branch.misplaced
        AND source_branch.position <> {unknown} THEN 1 ELSE 0 END, mirror_branch.advanced_at,
    CASE WHEN mirror_branch.head = source_branch.unread_head THEN '' ELSE source_branch.unread_head END,
    source_branch.unread_since
FROM {mirror} mirror
JOIN {source} source_branch ON source_branch.repository_id = mirror.source_id AND source_branch.gone_at IS NULL
LEFT JOIN {branch} mirror_branch ON mirror_branch.mirror_id = mirror.id AND mirror_branch.name = source_branch.name
WHERE mirror.id IN ({mirrors}) ORDER BY mirror.name, source_branch.name
"""


@dataclass(frozen=True, slots=True)
class BranchLag:
    """Where one branch stands: `first` is what it lacks first, None where it lacks nothing. `proven`: it is where the
    mirror put it, and proven whole there."""

    mirror: int
    branch: str
    proven: bool
    advanced_at: datetime | None
    first: Pending | None


def branch_lags(mirrors: Sequence[Mirror]) -> Iterator[BranchLag]:
    """Where each branch of several mirrors stands. Without those that are aside: dropped by the source, left by the
    selection, or not made by us. No row of a model is made for what is up to date."""
    narrow = {mirror.pk: mirror.selection for mirror in mirrors if not mirror.selection.everything}
    rows = [row for row in _all_rows(mirrors) if row[0] not in narrow or row[1] in narrow[row[0]]]
    behind = {(row[0], row[1]): (row[2], row[4]) for row in rows if row[4] < row[3]}
    pending, created = pending_of(behind, few=1), {mirror.pk: mirror.created_at for mirror in mirrors}
    for mirror, branch, _, _, _, proven, advanced_at, unread, since in rows:
        first = pending[mirror, branch][0] if (mirror, branch) in pending else None
        if unread and since:
            first = count_unread(first, unread, moment(since))
        first = waiting_since(first, created[mirror]) if first else None
        yield BranchLag(mirror, branch, bool(proven), moment(advanced_at) if advanced_at else None, first)


def _all_rows(mirrors: Sequence[Mirror]) -> list[tuple[Any, ...]]:
    if not mirrors:
        return []
    return fetch(_ALL, unknown=UNKNOWN, mirrors=", ".join(f"{mirror.pk:d}" for mirror in mirrors))
