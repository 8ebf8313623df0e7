"""The markers of a run: taken away before anything below them changes, written when all of it has arrived."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from django.db import transaction
from django.db.models import F

from core.errors import LakeMirrorError
from core.export_failures import reason_of
from core.markers import Failed, marker_of
from core.slices import Late
from exports.models import ExportDirectory, ExportFailure, ExportRun
from exports.plane import Plane
from mirrors import clock
from mirrors.duties import Lease

State = ExportDirectory.State
AT_ONCE, THREADS = 1000, 16


def clear(run: ExportRun, plane: Plane, lease: Lease) -> bool:
    """Take some markers away; true when there are none left. Where the commit has a file of that name, it is the
    user's, and none of ours."""
    rows = list(run.directories.filter(state=State.PLANNED)[:AT_ONCE])
    if not rows:
        return True
    keys = {marker_of(bytes(row.path)): row for row in rows}
    users = plane.held(list(keys))
    ours = [key for key in keys if key not in users]
    with closing(plane.copier()) as copier:
        for error in copier.delete(ours).values():
            raise error
    with transaction.atomic():
        lease.hold()
        _set([row for key, row in keys.items() if key in users], State.USERS)
        _set([keys[key] for key in ours], State.CLEARED)
    return False


def write(run: ExportRun, plane: Plane, lease: Lease, *, none_at_all: bool) -> bool:
    """Write some markers, the deepest first, so that a child's is there before its parent's; true when none is left.
    Nothing is said of a directory in or below which something failed."""
    waiting = run.directories.filter(state=State.CLEARED).order_by("-depth", "pk")
    rows = list(waiting[:AT_ONCE])
    if not rows:
        return True
    level = [row for row in rows if row.depth == rows[0].depth]
    failed = Failed(one.encode("latin-1") for one in run.failed_in)
    held = [row for row in level if none_at_all or failed.below(bytes(row.path))]
    told = _write_all([row for row in level if row not in held], plane)
    with transaction.atomic():
        lease.hold()
        _set(held, State.HELD)
        _set([row for row, error in told if error is None], State.WRITTEN)
        _note_failed(run, [(row, error) for row, error in told if isinstance(error, LakeMirrorError)])
    if any(isinstance(error, LakeMirrorError) and error.retryable for _, error in told):
        raise next(error for _, error in told if isinstance(error, LakeMirrorError) and error.retryable)
    return False


def _write_all(rows: Iterable[ExportDirectory], plane: Plane) -> list[tuple[ExportDirectory, Exception | None]]:
    """Each marker and what kept it from being written."""
    with closing(plane.copier()) as copier, ThreadPoolExecutor(THREADS) as pool:

        def one(row: ExportDirectory) -> tuple[ExportDirectory, Exception | None]:
            try:
                copier.writer.put(copier.destination.uri(marker_of(bytes(row.path))), b"", {})
            except (LakeMirrorError, Late) as error:
                return row, error
            return row, None

        return list(pool.map(one, rows))


def _note_failed(run: ExportRun, failed: list[tuple[ExportDirectory, LakeMirrorError]]) -> None:
    """A marker that can't be written is a failure like that of a file; its parents get none either."""
    final = [(row, error) for row, error in failed if not error.retryable]
    if not final:
        return
    now = clock.now()
    rows = [
        ExportFailure(run=run, key=marker_of(bytes(row.path)), reason=str(reason_of(error)), detail=str(error), at=now)
        for row, error in final
    ]
    ExportFailure.objects.bulk_create(rows, ignore_conflicts=True)
    _set([row for row, _ in final], State.HELD)
    known = ExportRun.objects.values_list("failed_in", flat=True).get(pk=run.pk)
    found = {bytes(row.path).decode("latin-1") for row, _ in final}
    ExportRun.objects.filter(pk=run.pk).update(failed=F("failed") + len(final), failed_in=sorted({*known, *found}))


def _set(rows: Iterable[ExportDirectory], state: str) -> None:
    ExportDirectory.objects.filter(pk__in=[row.pk for row in rows]).update(state=state)
