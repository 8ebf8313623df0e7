"""Where directories have markers, and by which expressions they got them.

That belongs to the place, and outlives the export: whoever exports there next, or to a place that overlaps it, takes
away each marker before anything below it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from django.db.models import Q

from adapters.regex import Patterns
from core.exporting.destinations import holders_of, inside, overlap
from exports.models import MarkedPlace

EVERY = ""
"""An expression that is found in each directory."""


def note(place: str, patterns: Sequence[str], *, known: Sequence[str] = ()) -> list[str]:
    """Directories of a place get markers by these expressions from now on. Gives the others by which some may have one:
    those of before, and each where markers of an overlapping place may stand. Inside of a transaction."""
    row = MarkedPlace.objects.select_for_update().filter(place=place).first() or MarkedPlace(place=place)
    row.expressions = list(dict.fromkeys([*row.expressions, *known, *patterns]))
    if row.expressions:
        row.save()
    former = [pattern for pattern in row.expressions if pattern not in patterns]
    return [*former, EVERY] if any(_overlapping(place)) else former


def above(place: str) -> Mapping[str, list[bytes]]:
    """Directories that hold this place, and have a marker of a place around it: by that place."""
    around = (row for row in _overlapping(place) if inside(place, row.place))
    return {row.place: list(_marked_above(row, place)) for row in around}


def _marked_above(row: MarkedPlace, place: str) -> Iterator[bytes]:
    is_marked = Patterns(row.expressions).matches_directory
    for holder in holders_of(place):
        directory = f"{holder}/".removeprefix(f"{row.place}/").encode()
        if inside(holder, row.place) and is_marked(directory):
            yield directory


def _overlapping(place: str) -> Iterator[MarkedPlace]:
    """Other places that hold this one, or lie in it."""
    near = MarkedPlace.objects.filter(Q(place__in=holders_of(place)) | Q(place__startswith=f"{place}/")).order_by("pk")
    return (row for row in near if row.place != place and overlap(row.place, place))
