"""How deep a check looks: as deep as the mirror's own, or as what found a range damaged beyond that."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

from core.mirroring.object_check import Depth, deeper_of
from db.chunks import chunks
from mirrors.models import Mirror


@dataclass(frozen=True, slots=True)
class HowDeep:
    """`reads_all`: at depth `content`, every object, whatever share the mirror reads otherwise."""

    depth: Depth
    reads_all: bool = False


def as_found(depth: Depth, deeper: str) -> HowDeep:
    """`depth`, or that of what found a range damaged (`Coverage.deeper`). What only reading found may be any of its
    objects, so a share of them would not find it again."""
    return HowDeep(deeper_of(depth, deeper), deeper == Depth.CONTENT)


def found_deeper(mirror: Mirror, range_ids: Sequence[str]) -> dict[str, str]:
    """`deeper` of those that were found damaged by a look which the mirror's own may not equal, whatever became of
    them."""
    rows = mirror.coverage.filter(deeper__in={*Depth(mirror.depth).deeper, Depth.CONTENT})
    found = rows.values_list("range_id", "deeper")
    return dict(pair for some in chunks(range_ids) for pair in found.filter(range_id__in=some))


def as_deep(mirror: Mirror, look: HowDeep) -> Mirror:
    """The mirror as if its settings asked for such a look: for one check, never to be saved."""
    other = copy(mirror)
    other.depth = look.depth.value
    if look.reads_all:
        other.content_sample = 1.0
    return other
