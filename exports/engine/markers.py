"""The markers of a run: taken away before anything below them changes, written when all of it has arrived."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from django.db import transaction

from adapters.regex import Patterns
from core.errors import LakeMirrorError
from core.exporting.deadline import Late
from core.exporting.failure_reasons import reason_of, words_of
from core.exporting.markers import Failed, marker_of
from core.exporting.unit_values import Marked
from deployment.wiring import region_settings
from exports.engine import marked_places
from exports.engine.note_failures import failed_directories, note_failed_directories, note_failures
from exports.engine.run_io import Plane
from exports.models import ExportDirectory, ExportRun
from jobs.lease import Lease

log = logging.getLogger("lakemirror.export")

State = ExportDirectory.State
AT_ONCE = 1000


def clear(run: ExportRun, plane: Plane, lease: Lease) -> bool:
    """Take some markers away; true when there are none left. Where the commit has a file of that name, it is the
    user's, and none of ours. Raises what keeps one from going: nothing below it may change while it stands."""
    rows = {bytes(row.path): row for row in run.directories.filter(state=State.PLANNED)[:AT_ONCE]}
    if not rows:
        return True
    held = plane.held([marker_of(path) for path in rows])
    users = [path for path in rows if marker_of(path) in held]
    own = [path for path in rows if marker_of(path) not in held]
    marked = plane.remove_markers(own)
    for error in marked.failures.values():
        raise error
    if marked.left:
        raise Late
    marked_again = Patterns(run.patterns).matches_directory
    with transaction.atomic():
        lease.lock()
        _set(rows, users, State.USERS)
        _set(rows, own, State.CLEARED)
        run.directories.filter(pk__in=[rows[path].pk for path in own if not marked_again(path)]).delete()
    return False


def clear_above(run: ExportRun, plane: Plane) -> None:
    """Take away what says that directories around the run's place are whole: the place had been a part of another one.
    That lies outside of it, so a store that refuses it does not keep the run from going on."""
    if not run.to_copy + run.to_delete:
        return
    for place, directories in marked_places.above(region_settings.export_place(run.export.region, run.path)).items():
        try:
            marked = plane.remove_markers(directories, place)
        except LakeMirrorError as error:
            marked = Marked(failures=dict.fromkeys(directories, error))
        for directory, error in marked.failures.items():
            if error.retryable and not plane.last_try:
                raise error
            uri = f"{place}/{marker_of(directory).decode()}"
            log.warning("%s may stay, though %s changes below it: %s", uri, run.path, error)
        if marked.left:
            raise Late


def write(run: ExportRun, plane: Plane, lease: Lease, *, none_at_all: bool) -> bool:
    """Write some markers, the deepest first, so that a child's is there before its parent's; true when none is left.
    Nothing is said of a directory in or below which something failed."""
    waiting = run.directories.filter(state=State.CLEARED).order_by("-depth", "pk")
    rows = {bytes(row.path): row for row in waiting[:AT_ONCE]}
    if not rows:
        return True
    failed = Failed(failed_directories(run))
    ready = [path for path in rows if not none_at_all and not failed.below(path)]
    marked = plane.write_markers(ready)
    passing = {path: error for path, error in marked.failures.items() if error.retryable and not plane.last_try}
    final = {path: error for path, error in marked.failures.items() if path not in passing}
    above = Failed([*marked.failures, *marked.left])
    written = [path for path in ready if not above.below(path)]
    with transaction.atomic():
        lease.lock()
        _set(rows, [path for path in rows if path not in ready], State.HELD)
        _set(rows, written, State.WRITTEN)
        _note(run, rows, final)
    for error in passing.values():
        raise error
    return False


def _note(run: ExportRun, rows: Mapping[bytes, ExportDirectory], failed: Mapping[bytes, LakeMirrorError]) -> None:
    """A marker that can't be written is a failure like that of a file; its parents get none either."""
    note_failures(run, {marker_of(path): (str(reason_of(error)), words_of(error)) for path, error in failed.items()})
    note_failed_directories(run, failed)
    _set(rows, failed, State.HELD)
    ExportRun.objects.filter(pk=run.pk).update(failed=run.failed + len(failed))


def _set(rows: Mapping[bytes, ExportDirectory], paths: Iterable[bytes], state: str) -> None:
    ExportDirectory.objects.filter(pk__in=[rows[path].pk for path in paths]).update(state=state)
