"""Pieces of an export's work, and what is done with them in each phase."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from core.errors import LakeMirrorError
from core.exporting.unit_planning import Interval, Unit


class Phase(StrEnum):
    """CLEAR: the planned last keys go, whether the target has them or not. COPY: copies and deletes of all but the last
    keys. LAST: copies of the last keys, but where something failed below their directory."""

    CLEAR = "clear"
    COPY = "copy"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class UnitWork:
    """A unit, or a part of one. `number` names it in the results; of its rows those in `left` are wanted (None: all).

    Rows are a part's planned ones in a phase. They come out the same each time, and so do their numbers.
    """

    number: int
    unit: Unit
    part: int = 0
    parts: int = 1
    left: tuple[Interval, ...] | None = None


@dataclass(slots=True)
class Marked:
    """What became of the markers of some directories. `left`: not reached before the deadline; `unanswered`: a write
    got no answer, and may still be carried out."""

    left: list[bytes] = field(default_factory=list)
    failures: dict[bytes, LakeMirrorError] = field(default_factory=dict)
    unanswered: bool = False
