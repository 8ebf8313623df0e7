"""What exports have left at places that they gave up for others: looked at should they come back.

Once somebody else has such a place, it is theirs: nothing that was known of it holds any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.installations.places import Place, overlap
from deployment.wiring import region_settings
from exports.models import Export

Places = Mapping[str, Sequence[str]]
"""Places that were left, each with the commits that it may hold."""


def leave_for(export: Export) -> dict[str, Any]:
    """The columns of an export that begins to write at its place: what it tried elsewhere is left there. A place of its
    success that overlaps this one will not be as the success left it: it is no base any more, and may still hold it."""
    left = left_with(export.left, export.attempted_path, export.attempted, at=export.path)
    succeeded = export.path_at_success
    if not succeeded or succeeded == export.path or not overlap(succeeded, export.path):
        return {"left": left}
    return {"left": left_with(left, succeeded, [export.last_success_ref], at=export.path), "path_at_success": ""}


def left_with(left: Places, place: str, refs: Sequence[str], *, at: str) -> dict[str, list[str]]:
    """All that is left behind by an export that is at one place now, and leaves these commits at another one."""
    left_behind = {path: list(commits) for path, commits in left.items() if path != at}
    if place and place != at:
        left_behind[place] = list(dict.fromkeys([*left_behind.get(place, []), *refs]))
    return left_behind


def take(export: Export) -> None:
    """Its place is this export's from now on: others that were there begin anew should they come back. Inside of a
    transaction."""
    forget(region_settings.export_place(export.region, export.path), but=export.pk)


def forget(place: Place, *, but: int | None = None) -> None:
    """A place is somebody else's from now on: who is no export, or the one of this key."""
    for export in Export.objects.exclude(pk=but).select_for_update().order_by("pk"):
        if values := _forgotten(export, place):
            Export.objects.filter(pk=export.pk).update(**values)


def _forgotten(export: Export, place: Place) -> dict[str, Any]:
    """The columns of an export in which something of this place stood, without that."""

    def is_gone(path: str) -> bool:
        return place.overlaps(region_settings.export_place(export.region, path))

    columns: dict[str, Any] = {"left": {path: commits for path, commits in export.left.items() if not is_gone(path)}}
    for name in ("path_at_success", "attempted_path"):
        path = getattr(export, name)
        columns[name] = "" if path and is_gone(path) else path
    return {name: value for name, value in columns.items() if value != getattr(export, name)}
