"""A slice of a run: its phase is carried a piece further, as far as the time goes.

What a phase has done stands in the rows of its units or directories, in one transaction with what was counted. All
that is visible at the destination is written by something that knows the slice's deadline.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from core import errors
from core.errors import Fenced, LakeMirrorError
from core.exporting.deadline import Late
from core.exporting.state_machine import State
from core.exporting.unit_values import Phase as Work
from core.text.phrases import count
from db import clock
from exports.engine import manifests, markers, runs, stale_uploads, status_files, unit_rows
from exports.engine.note_failures import note_failed_directories, note_failures, note_kept
from exports.engine.run_io import Plane
from exports.engine.time_slice import Slice
from exports.models import ExportRun, ExportUnit
from jobs.lease import Lease

log = logging.getLogger("lakemirror.export")

Phase = ExportRun.Phase
UNITS_AT_ONCE, FILES_AT_ONCE, ENTRIES_AT_ONCE = 64, 100_000, 3_000_000
MOST_FAILURES = 1000
"""More than these, and a run ends before the rest is tried: it has failed anyway."""
AFTER = dict(pairwise(Phase))


def carry(run: ExportRun, lease: Lease, *, last_try: bool = False) -> str:
    """Work on a run until the slice is over; says in words how far it is. Raises what keeps it from going on."""
    piece = Slice.begin(run.export, lease)
    plane = Plane(run, piece, last_try)
    at_once = True
    try:
        while at_once and not piece.over and run.ended_at is None:
            if _STEPS[Phase(run.phase)](run, plane, lease):
                at_once = run.phase != Phase.CLEAR or not piece.unsettled
                if at_once:
                    _go_on(run, lease)
            run.refresh_from_db()
    except Fenced:
        raise
    except (LakeMirrorError, Late):
        _put_down(run, plane, at_once)
        raise
    _put_down(run, plane, at_once)
    return f"{run.ref[:8]}: {run.outcome or run.phase}, {run.copied:,} of {count(run.to_copy, 'file')} copied"


def _put_down(run: ExportRun, plane: Plane, at_once: bool) -> None:
    """The slice is over: nothing of it is under way, but for what got no answer. The same phase may be gone on with at
    once all the same, for it would only write the same again. Not so what follows CLEAR: a removal that is carried out
    late would take away what was written since."""
    if not plane.elsewhere:
        plane.piece.end()
    unanswered = at_once and not plane.elsewhere and plane.piece.unsettled
    if plane.piece.unanswered or unanswered != run.unanswered:
        compare = run.compare or plane.piece.unanswered  # nobody knows what of it is done already
        ExportRun.objects.filter(pk=run.pk).update(unanswered=unanswered, compare=compare)


def _go_on(run: ExportRun, lease: Lease) -> None:
    """To the next phase, if this one is still at hand; it got on, so whoever was gone is forgotten."""
    with transaction.atomic():
        lease.lock()
        after = AFTER[Phase(run.phase)]
        started = {**run.begun, after: clock.now().timestamp()}
        at_hand = ExportRun.objects.filter(pk=run.pk, phase=run.phase, ended_at=None)
        at_hand.update(phase=after, begun=started, takeovers=0)


# --- the phases: each says whether nothing of it is left --------------------------------------------------------------


def _plan(run: ExportRun, plane: Plane, lease: Lease) -> bool:
    if not run.cut:
        plane.check_places()
        stale_uploads.give_up_elsewhere(run, plane)
        unit_rows.cut(run, lease)
    rows = _some(run.units.filter(planned=False), "entries", ENTRIES_AT_ONCE)
    if not rows:
        status_files.tell_begun(run, plane)
        return True
    unreadable: set[str] = set()

    def note(run: ExportRun, rows: Sequence[dict[str, Any]]) -> None:
        known = [row for row in rows if not row["unreadable"]]
        unreadable.update(range_id for row in rows for range_id in row["unreadable"])
        unit_rows.note_planned(run, known)

    plane.diff([unit_rows.work_of(row) for row in rows], _noting(run, lease, note))
    if unreadable:
        unit_rows.lose(run, unreadable, lease)
    return False


def _clear(run: ExportRun, plane: Plane, lease: Lease) -> bool:
    status_files.take_back_success(run, plane)
    markers.clear_above(run, plane)
    return markers.clear(run, plane, lease) and _worked(run, plane, lease, run.units.filter(last_keys__gt=0))


def _copy(run: ExportRun, plane: Plane, lease: Lease) -> bool:
    return _is_stopped(run) or _worked(run, plane, lease, run.units.all())


def _last(run: ExportRun, plane: Plane, lease: Lease) -> bool:
    return _is_stopped(run) or _worked(run, plane, lease, run.units.filter(last_keys__gt=0))


def _markers(run: ExportRun, plane: Plane, lease: Lease) -> bool:
    return markers.write(run, plane, lease, none_at_all=_is_stopped(run))


def _manifest(run: ExportRun, plane: Plane, lease: Lease) -> bool:
    if not run.failed:
        manifests.write(run, plane, lease)
        if run.attempted:
            stale_uploads.give_up(run, plane)
    return True


def _status(run: ExportRun, plane: Plane, lease: Lease) -> bool:
    """The status file, then the database: the run is over."""
    state = State.FAILED if run.failed else State.SUCCESS
    status_files.write_status(run, plane, state, run.failed, clock.now())
    with transaction.atomic():
        lease.lock()
        if run.failed:
            runs.fail(run, _failure_text(run))
        else:
            runs.succeed(run)
    if run.failed:
        log.warning("the export of %s failed: %s", run.export, _failure_text(run))
    else:
        log.info("%s: %s is exported to %s", run.export, run.ref[:8], run.path)
    return False


_STEPS: Mapping[Phase, Callable[[ExportRun, Plane, Lease], bool]] = {
    Phase.PLAN: _plan,
    Phase.CLEAR: _clear,
    Phase.COPY: _copy,
    Phase.LAST: _last,
    Phase.MARKERS: _markers,
    Phase.MANIFEST: _manifest,
    Phase.STATUS: _status,
}


def _failure_text(run: ExportRun) -> str:
    """Why it failed, by its first failure; the words of old come first."""
    first = run.failures.first()
    more = " (the rest was not tried)" if _is_stopped(run) else ""
    return f"{count(run.failed, 'task')} failed{more}" + (f": {first.detail}" if first else "")


def _is_stopped(run: ExportRun) -> bool:
    return run.failed > MOST_FAILURES


# --- units ------------------------------------------------------------------------------------------------------------


def _worked(run: ExportRun, plane: Plane, lease: Lease, which: QuerySet[ExportUnit]) -> bool:
    """Some units that the phase has not done, worked on; true when there are none left."""
    phase, order = Work(run.phase), list(Work)
    done = order[order.index(phase) :]
    rows = _some(which.filter(planned=True).exclude(phase__in=done), "files", FILES_AT_ONCE)
    if not rows:
        return True
    postponed: list[LakeMirrorError] = []

    def note(run: ExportRun, rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            plane.piece.unanswered |= row["unanswered"]
            postponed.extend(_note_work(run, row))

    plane.work([unit_rows.work_of(row) for row in rows], phase, _noting(run, lease, note))
    if postponed:
        raise postponed[0]
    return False


def _some(rows: QuerySet[ExportUnit], column: str, most: int) -> list[ExportUnit]:
    """The first ones, as many as make a piece of work."""
    candidates = list(rows[:UNITS_AT_ONCE])
    sums = accumulate(getattr(row, column) // row.parts for row in candidates)
    return [row for row, sofar in zip(candidates, sums, strict=True) if sofar <= most] or candidates[:1]


def _noting(
    run: ExportRun, lease: Lease, note: Callable[[ExportRun, Sequence[dict[str, Any]]], None]
) -> Callable[[Sequence[Mapping[str, Any]]], None]:
    """What takes a job's rows as they come: nothing of a run that somebody else carries on by now."""

    def take(rows: Sequence[Mapping[str, Any]]) -> None:
        with transaction.atomic():
            lease.lock()
            note(run, [dict(row) for row in rows])

    return take


def _note_work(run: ExportRun, row: dict[str, Any]) -> Iterator[LakeMirrorError]:
    """What became of a unit in this phase: counts, failures, and what is left. Gives what may pass by itself."""
    values = {"left": None, "phase": run.phase} if row["done"] else {"left": row["left"]}
    run.units.filter(number=row["unit"], part=row["part"]).update(**values)
    _count(run, row)
    note_kept(run, row["kept_keys"])
    note_failures(run, {failure["key"]: (failure["reason"], failure["message"]) for failure in row["failures"]})
    note_failed_directories(run, row["failed_directories"])
    if row["reason"]:
        yield getattr(errors, row["reason"], errors.RemoteFailure)(row["detail"])


def _count(run: ExportRun, row: Mapping[str, Any]) -> None:
    """Removing last keys before they are written again is no removal that anybody planned."""
    deleted = 0 if run.phase == Phase.CLEAR else row["deleted"]
    ExportRun.objects.filter(pk=run.pk).update(
        copied=F("copied") + row["copied"],
        copied_bytes=F("copied_bytes") + row["bytes"],
        skipped=F("skipped") + row["skipped"],
        deleted=F("deleted") + deleted,
        failed=F("failed") + row["failed"],
        kept=F("kept") + row["kept"],
        requests=F("requests") + row["requests"],
    )
