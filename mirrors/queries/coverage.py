"""How much of a commit is covered by checks that found its ranges complete: how many, how deep, how old. And what of
these finds nothing but a read ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, Sum

from core.mirroring.object_check import Depth, Reason
from db.chunks import chunks
from mirrors.models import Coverage, Mirror
from mirrors.models.problem import FOUND_BY_READING
from mirrors.models.querysets import CoverageQuerySet
from mirrors.queries.metaranges import ranges_named

CHUNK = 10_000
"""So many ids in one question; hardly a commit has more ranges."""


@dataclass(frozen=True, slots=True)
class Covered:
    """Complete ranges, their entries and the bytes of these; the least depth, the oldest and the latest check."""

    ranges: int = 0
    entries: int = 0
    bytes: int = 0
    depth: Depth | None = None
    oldest: datetime | None = None
    latest: datetime | None = None


def covering(coverage: CoverageQuerySet, range_ids: Sequence[str]) -> Covered:
    """What complete `coverage` there is of some ranges."""
    totals = []
    for some in chunks(range_ids, CHUNK):
        rows = coverage.filter(range_id__in=some, state=Coverage.State.COMPLETE)
        totals += rows.order_by().values_list(
            "depth", Count("pk"), Sum("entries"), Sum("bytes"), Min("checked_at"), Max("checked_at")
        )
    if not totals:
        return Covered()
    depths, ranges, entries, sizes, oldest, latest = zip(*totals, strict=True)
    depth = next(depth for depth in Depth if depth in depths)
    return Covered(sum(ranges), sum(entries), sum(sizes), depth, min(oldest), max(latest))


COUNTED_ONCE = 2_000_000
"""Beyond so many looks those of one object at several ranges count as several."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was looked for at a mirror so far: so many objects, with these bytes, in so many ranges."""

    ranges: int
    objects: int
    bytes: int


def looked_for(mirror: Mirror) -> Looked:
    """Of its complete ranges, each object once as far as that can be told; bytes in proportion."""
    rows = mirror.coverage.filter(state=Coverage.State.COMPLETE)
    sums = rows.aggregate(Count("pk"), Sum("looked_up"), Sum("entries"), Sum("bytes"))
    looks, entries, size = (sums[f"{name}__sum"] or 0 for name in ("looked_up", "entries", "bytes"))
    looked = _different(rows) if looks <= COUNTED_ONCE else looks
    return Looked(sums["pk__count"], looked, round(size * min(looked / entries, 1)) if entries else 0)


def _different(rows: CoverageQuerySet) -> int:
    """Objects that were looked for, whatever number of ranges has looked for them. By their checksums, which
    make one of two objects now and then; a range of an older version has none, and counts by its looks."""
    kept, more = [np.zeros(0, "<u4")], 0
    for looked, looks in rows.values_list("looked", "looked_up"):
        if looked is None:
            more += looks
        else:
            kept.append(np.frombuffer(bytes(looked), "<u4"))
    return int(np.unique(np.concatenate(kept)).size) + more


@dataclass(frozen=True, slots=True)
class CommitCoverage:
    """How many ranges and entries a commit has, and what of them is covered."""

    ranges: int
    entries: int
    covered: Covered


def commit_coverage(mirror: Mirror, metarange_id: str) -> CommitCoverage | None:
    """What is covered of the commit of a metarange; None while the metarange is not at hand."""
    named = ranges_named(mirror, metarange_id)
    if named is None:
        return None
    proving = mirror.coverage.proving(next(iter(Depth)))
    covered = covering(proving, [ref.id for ref in named])
    return CommitCoverage(len(named), sum(ref.count for ref in named), covered)


def only_read_ends() -> Q:
    """Blockers that stay as long as the store is the same: what reading found of an object, a metarange that can't be
    read (a HEAD finds it there), and what differs by a check that was deeper than the mirror's own."""
    deeper = Coverage.objects.filter(mirror=OuterRef("mirror"), range_id=OuterRef("holder_id")).found_deeper()
    by_reading = Q(reason__in=[*FOUND_BY_READING, Reason.METARANGE_UNREADABLE])
    return Q(must_read=True) | by_reading | Q(Exists(deeper), reason__in=[Reason.SIZE, Reason.ETAG])
