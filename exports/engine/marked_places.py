"""Where directories have markers, and by which expressions they got them.

That belongs to the place, and outlives the export: whoever exports there next, or to a place that overlaps it, takes
away each marker before anything below it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from django.db.models import Q

from adapters.regex import Patterns
from core.exporting.destinations import holders_of
from core.installations.places import Place, inside
from exports.models import MarkedPlace

EVERY = ""
"""An expression that is found in each directory."""


def note(place: Place, patterns: Sequence[str], *, known: Sequence[str] = ()) -> list[str]:
    """Directories of a place get markers by these expressions from now on. Gives the others by which some may have one:
    those of before, and each where markers of an overlapping place may stand. Inside of a transaction."""
    rows = list(MarkedPlace.objects.select_for_update().filter(place=place.uri).order_by("pk"))
    row = next((row for row in rows if row.store == place.store), MarkedPlace(place=place.uri, store=place.store))
    unknown = [pattern for other in rows if other.store is None for pattern in other.expressions]
    row.expressions = list(dict.fromkeys([*row.expressions, *unknown, *known, *patterns]))
    if row.expressions:
        row.save()
    former = [pattern for pattern in row.expressions if pattern not in patterns]
    return [*former, EVERY] if any(_overlapping(place)) else former


def above(place: Place) -> Mapping[str, list[bytes]]:
    """Directories that hold this place, and have a marker of a place around it: by that place."""
    around = (row for row in _overlapping(place) if inside(place.uri, row.place))
    return {row.place: list(_marked_above(row, place.uri)) for row in around}


def _marked_above(row: MarkedPlace, place: str) -> Iterator[bytes]:
    is_marked = Patterns(row.expressions).matches_directory
    for holder in holders_of(place):
        directory = f"{holder}/".removeprefix(f"{row.place}/").encode()
        if inside(holder, row.place) and is_marked(directory):
            yield directory


def _overlapping(place: Place) -> Iterator[MarkedPlace]:
    """Other places of its store that hold this one, or lie in it; and those of which an earlier version did not write
    down in which store they are."""
    uri = place.uri
    near = MarkedPlace.objects.filter(Q(place__in=holders_of(uri)) | Q(place__startswith=f"{uri}/")).order_by("pk")
    return (row for row in near if row.place != uri and place.overlaps(Place(row.place, row.store)))
