"""Uploads in parts that nobody will finish: of files that no run brings any more, at a place that is left, say.

A store tells of an unfinished upload only its key. Ours are those to keys of commits that runs tried to bring there;
others that somebody may have below the export path are left alone.
"""

from __future__ import annotations

import logging

from core.errors import LakeMirrorError
from core.exporting.deadline import Late
from deployment.wiring import region_settings
from exports.engine.run_io import Plane
from exports.engine.time_slice import Slice
from exports.models import Export, ExportRun
from jobs.lease import Lease

log = logging.getLogger("lakemirror.export")


def give_up(run: ExportRun, plane: Plane) -> None:
    """Abort what is unfinished at the place of a run. What can't be told or asked for now is only logged: it costs
    room, and nothing else depends on it."""
    try:
        uploads = plane.unfinished()
        held = (
            {key for ref in {run.ref, *run.attempted} for key in plane.held(list(uploads), ref)} if uploads else set()
        )
        plane.abort({key: uploads[key] for key in held})
    except (LakeMirrorError, Late) as error:
        log.warning("unfinished uploads at %s may stay: %s", run.path, error)


def give_up_elsewhere(run: ExportRun, plane: Plane) -> None:
    """When a run begins: those of the run before it, if that one went to another place, which is nobody else's now."""
    before = run.export.runs.filter(pk__lt=run.pk).order_by("-pk").select_related("export").first()
    if before is None or before.path == run.path:
        return
    place = region_settings.export_place(run.export.region, before.path)
    others = Export.objects.exclude(pk=run.export_id).order_by().values_list("region", "path")
    if not any(place.overlaps(region_settings.export_place(*other)) for other in others):
        give_up(before, Plane(before, plane.piece))


def give_up_all(export: Export, lease: Lease) -> None:
    """When an export is deleted: those of its last run."""
    run = export.runs.order_by("-pk").select_related("export").first()
    if run is not None:
        piece = Slice.begin(export, lease)
        give_up(run, Plane(run, piece))
        piece.end()
