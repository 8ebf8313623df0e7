"""What a link does about a key where rules lead both ways, by what lies at its source and at its target. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.replicating.stamps import Stamp, is_newer


class Step(StrEnum):
    """What is to be done at the target. Kept: it has something newer, which the rules that lead back bring here."""

    COPY = "copy"
    DELETE = "delete"
    KEPT = "kept"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Found:
    """What lies under a key: an object, or a delete marker, with its stamp."""

    stamp: Stamp
    deleted: bool = False


def step(source: Found | None, there: Found | None, *, equal: bool, markers: bool) -> Step:
    """What a link does; None where a place has nothing, and no marker. `equal`: both have the same object; `markers`:
    deletions are followed.

    Nothing is concluded from an object that is just not there, for it may have been purged, or not have come yet. A
    marker is set also where nothing lies: others may hear of it from there alone.
    """
    if source is None or equal or (source.deleted and there is not None and there.deleted):
        return Step.NOTHING
    if there is None:
        return Step.COPY if not source.deleted else Step.DELETE if markers else Step.NOTHING
    if there.deleted and not markers:
        return Step.COPY
    if not is_newer(source.stamp, there.stamp):
        return Step.KEPT
    if source.deleted:
        return Step.DELETE if markers else Step.NOTHING
    return Step.COPY
