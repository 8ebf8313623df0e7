"""What somebody is told of held merges: an answer names the regions of all mirrors, of which they may see one alone."""

from __future__ import annotations

from typing import Any

from mirrors.models import HeldMerge, Mirror
from mirrors.services.rights import sees_every_mirror

Regions = frozenset[str] | None
"""The regions that somebody may be told of; None: all."""


def regions_told(user: Any, mirror: Mirror) -> Regions:
    """Those of the mirrors of the same source that they may see."""
    if sees_every_mirror(user):
        return None
    return frozenset(Mirror.objects.visible_to(user).filter(source=mirror.source_id).values_list("region", flat=True))


def complete_in(held: HeldMerge, told: Regions) -> list[str]:
    """The regions that had all of it."""
    return [region for region in held.complete_in if told is None or region in told]


def answer_of(held: HeldMerge, told: Regions) -> str:
    """What lakeFS was answered, "" where that may name a region which they are not told of."""
    return held.detail if told is None else ""
