"""The duty of an export: look at the branch, start what is due, and carry the run that goes on a piece further.

A run is carried in slices of some seconds, so that many exports share the workers. Between slices all that is known
stands in the database: whoever takes over goes on there, once no task of the one before can still write.
"""

from __future__ import annotations

import logging

from django.db import transaction

from adapters.s3.store import split_uri
from core.errors import Conflict, Fenced, LakeMirrorError, NotFound, Unreachable
from core.exporting import state_machine
from core.exporting.deadline import Late
from core.exporting.failure_reasons import words_of
from core.exporting.state_machine import State
from db import clock
from exports.engine import commits_behind, phases, runs, stale_uploads, status_files, verify
from exports.engine.note_failures import UNWRITTEN
from exports.engine.run_io import Plane
from exports.engine.time_slice import Slice
from exports.models import Export, ExportRun
from jobs.lease import DutyOutcome, Lease
from jobs.models import Duty

log = logging.getLogger("lakemirror.export")

TRIES = 7
"""So often in a row what may pass by itself is tried, over some minutes, before the export has failed."""
MOST_TAKEOVERS = 5


def advance(lease: Lease) -> DutyOutcome:
    """One round for one export."""
    export = Export.objects.filter(pk=-lease.duty.subject).first()
    if export is None or export.deleting:
        return _remove(export, lease)
    run = export.runs.open().select_related("export").first()
    if run is None:
        return _look(export, lease)
    if export.paused:
        return DutyOutcome(f"paused in {run.phase}")
    try:
        runs.require_apart(export, run)
        runs.require_same_store(run)
        runs.require_newest(run)
    except Conflict as error:
        return _give_up(run, lease, words_of(error))
    commits_behind.look_meanwhile(export)
    return _carry_on(run, lease)


# --- no run goes on ---------------------------------------------------------------------------------------------------


def _look(export: Export, lease: Lease) -> DutyOutcome:
    """Is there something to export? What can't be asked is noted, and asked again; a branch that was deleted once a
    minute."""
    if runs.rests_as_gone(export):
        return _verify(export, lease) or DutyOutcome(runs.gone_outcome(export))
    try:
        head = runs.head_of(export)
    except LakeMirrorError as error:
        if export.gone and isinstance(error, NotFound):
            return _verify(export, lease) or DutyOutcome(runs.gone_outcome(export))
        Export.objects.filter(pk=export.pk).update(look_error=str(error))
        raise
    commits_behind.count_behind(export)
    standing = export.standing()
    if not state_machine.starts_by_itself(standing, head):
        return _verify(export, lease) or DutyOutcome(_resting(standing, head))
    if standing.state is State.REPAIRED:
        if (seconds_left := _seconds_of_writes(export)) > 0:
            return DutyOutcome("waiting for the last writes of the previous run", seconds_left)
        _tell_repaired(export, lease)
    with transaction.atomic():
        lease.lock()
        run = runs.start(export, head)
    return DutyOutcome(f"started exporting {run.ref[:8]}", 0.0)


def _verify(export: Export, lease: Lease) -> DutyOutcome | None:
    """A slice of the verification that somebody asked for; runs go before it."""
    verification = export.verifications.open().select_related("export").first()
    if verification is None:
        return None
    if (seconds_left := _seconds_of_writes(export)) > 0:
        return DutyOutcome("waiting for the last writes of the previous run", seconds_left)
    return verify.carry(verification, lease, last_try=lease.duty.failures + 1 >= TRIES)


def _resting(standing: state_machine.ExportSituation, head: str) -> str:
    if standing.paused:
        return "paused"
    if standing.state is State.FAILED:
        return "failed: waiting for Repair"
    return f"{head[:8]} is exported" if state_machine.is_exported(standing, head) else "not continuous"


def _tell_repaired(export: Export, lease: Lease) -> None:
    """The status file of the run that had failed says so before it is resumed: at the status path of now, for the one
    of then may be what was wrong. Where it can't be written the export goes on all the same."""
    run = export.runs.order_by("-pk").first()
    if run is None:
        return
    run.status_path = export.status_path
    run.save(update_fields=["status_path"])
    try:
        _write_status(run, State.REPAIRED, lease)
    except LakeMirrorError as error:
        if error.retryable and lease.duty.failures + 1 < TRIES:
            raise
        log.warning("that %s is repaired can't be told: %s", export, error)


def _tell_ended(export: Export, lease: Lease) -> None:
    """A run that its export's end broke off is told as failed; where that can't be, the export goes all the same."""
    run = export.runs.filter(ended_at=None).exclude(status_path="").first()
    try:
        if run is not None and run.cut:
            _write_status(run, State.FAILED, lease)
    except LakeMirrorError as error:
        log.warning("that the last run of %s was broken off can't be told: %s", export, error)


def _write_status(run: ExportRun, state: State, lease: Lease) -> None:
    piece = Slice.begin(run.export, lease)
    try:
        status_files.write_status(run, Plane(run, piece), state, max(1, run.failed), clock.now())
    except Late:
        raise Unreachable("not enough time was left for the status file") from None
    finally:
        piece.end()


def _remove(export: Export | None, lease: Lease) -> DutyOutcome:
    """The row goes when nothing that was started can write any more; its duty with it."""
    if export is not None:
        if (seconds_left := _seconds_of_writes(export)) > 0:
            return DutyOutcome("waiting for its last writes", seconds_left)
        _leave(export, lease)
        with transaction.atomic():
            lease.lock()
            export.delete()
    Duty.objects.filter(pk=lease.duty.pk).delete()
    return DutyOutcome("deleted")


def _leave(export: Export, lease: Lease) -> None:
    """What is unfinished at its places goes, unless they are somebody else's by now."""
    try:
        runs.require_apart(export, export.runs.order_by("-pk").first())
    except Conflict as error:
        log.warning("nothing is tidied up where %s was exported to: %s", export, error)
        return
    stale_uploads.give_up_all(export, lease)
    _tell_ended(export, lease)


# --- a run goes on ----------------------------------------------------------------------------------------------------


def _carry_on(run: ExportRun, lease: Lease) -> DutyOutcome:
    """A slice of a run. An error that may pass is tried again; another one, or one too many, is how the run ends."""
    if (run.in_hand or not run.unanswered) and (seconds_left := _seconds_of_writes(run.export)) > 0:
        return DutyOutcome("waiting for writes of a lost worker, or writes without an answer", seconds_left)
    if run.error:
        return _end(run, lease, run.error)
    if run.in_hand and _take_over(run) > MOST_TAKEOVERS:
        return _end(run, lease, f"its worker was lost {MOST_TAKEOVERS} times in a row")
    ExportRun.objects.filter(pk=run.pk).update(in_hand=True)
    last_try = lease.duty.failures + 1 >= TRIES
    try:
        with lease.keep_alive():
            summary = phases.carry(run, lease, last_try=last_try)
    except Fenced:
        raise
    except (LakeMirrorError, Late) as error:
        ExportRun.objects.filter(pk=run.pk).update(in_hand=False)
        if isinstance(error, Late):
            return DutyOutcome("the time of this slice is up", 0.0)
        if error.retryable and not last_try:
            raise
        return _end(run, lease, words_of(error))
    ExportRun.objects.filter(pk=run.pk).update(in_hand=False)
    return DutyOutcome(summary, 0.0)


def _take_over(run: ExportRun) -> int:
    """Somebody was gone in the middle: what of it has arrived nobody noted. Gives how often that was, in a row."""
    run.takeovers, run.compare = run.takeovers + 1, True
    run.save(update_fields=["takeovers", "compare"])
    return run.takeovers


def _end(run: ExportRun, lease: Lease, error: str) -> DutyOutcome:
    """The run has failed: its status file says so if it can, the database in any case. Not before a status that got no
    answer, which may say something else, can't be written any more."""
    run.refresh_from_db()
    run.export.refresh_from_db()
    if run.phase == ExportRun.Phase.STATUS and (seconds_left := _seconds_of_writes(run.export)) > 0:
        ExportRun.objects.filter(pk=run.pk).update(error=error, unanswered=False)
        return DutyOutcome("has failed, and waits for a status file that got no answer", seconds_left)
    try:
        _write_status(run, State.FAILED, lease)
    except LakeMirrorError as unwritten:
        error = f"{error}. {_unwritten(run, unwritten, error)}"
    return _give_up(run, lease, error)


def _give_up(run: ExportRun, lease: Lease, error: str) -> DutyOutcome:
    """The run has failed, and nothing more is written."""
    with transaction.atomic():
        lease.lock()
        runs.fail(run, error)
    log.warning("the export of %s failed: %s", run.export, error)
    return DutyOutcome(f"failed: {error}")


def _unwritten(run: ExportRun, why: LakeMirrorError, error: str) -> str:
    """That there is no status file; and why, unless `error` says that, or names the bucket that is missing."""
    text = words_of(why)
    known = isinstance(why, NotFound) and f"'{split_uri(run.status_path)[0]}'" in error
    return UNWRITTEN if known or text in error else f"{UNWRITTEN}: {text}"


def _seconds_of_writes(export: Export) -> float:
    """How long tasks that somebody else has started may still begin to write."""
    return 0.0 if export.writes_until is None else max(0.0, (export.writes_until - clock.now()).total_seconds())
