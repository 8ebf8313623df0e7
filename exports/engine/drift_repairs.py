"""What a verification found missing or different is brought again, by a run of its own for the same commit.

It builds upon nothing: each file is compared with what lies there. Should it fail, whatever runs next does so too.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.errors import Conflict
from core.exporting import state_machine
from core.exporting.state_machine import State
from core.exporting.unit_planning import Unit
from core.exporting.unit_windows import narrowed
from exports.engine import runs
from exports.models import Export, ExportDrift, ExportRun, ExportVerification

MOST_COMMITS = 50
"""So many of the commits that were brought or tried tell whose a file is that is in none of the last one."""

Kind = ExportDrift.Kind


def repairable(export: Export) -> ExportVerification | None:
    """The last verification of the place of now that tells anything, if it found something amiss that no run has
    repaired since."""
    last = export.verifications.filter(path=export.path).telling().order_by("-pk").first()
    if last is None or not last.drifted or last.repairs.filter(outcome=State.SUCCESS).exists():
        return None
    return last


def check(export: Export, *, remove: bool) -> ExportVerification:
    """The verification whose findings would be repaired. Raises Conflict where nothing may be, saying what to do."""
    if export.state == State.FAILED:
        raise Conflict("the last export failed", hint="Repair it first, then verify the destination again")
    if export.runs.open().exists() or export.state not in (State.NEVER, State.SUCCESS):
        raise Conflict("an export is in progress: the destination is being changed", hint="Wait until it is done")
    if export.verifications.open().exists():
        raise Conflict("the destination is being verified", hint="Repair what it finds when it is done")
    found = repairable(export)
    if found is None:
        text = "nothing to repair: no verification has found a problem that has not been repaired since"
        raise Conflict(text, hint="Verify the destination first")
    if not export.last_success_ref or export.path_at_success != export.path:
        raise Conflict(f"nothing to repair: no commit was exported to {export.path} yet", hint="Export one first")
    if not remove and not found.missing + found.different:
        text = "nothing is missing or different, and foreign files stay unless you request their removal"
        raise Conflict(text, hint="Request it by removeForeign or --remove")
    return found


def start(export: Export, *, remove: bool, asked_by: str) -> ExportRun:
    """Begin to repair; in a pause it waits for the end of that. `remove`: also what is in no file of the commit, but
    was brought with an earlier one. Raises Conflict, and NotFound for an export that was deleted. Inside of a
    transaction."""
    now = Export.objects.held(export.pk)
    found = check(now, remove=remove)
    earlier = commits_brought(now) if remove else []
    tried = state_machine.basis(now.standing()).attempted
    run = runs.begin(
        now,
        now.last_success_ref,
        base="",
        attempted=list(dict.fromkeys([*tried, *earlier])),
        asked_by=asked_by,
        repairs=found,
        actions=now.actions_at_success,
        # Where no run ever brought hooks those that lie there are somebody else's, though they be equal to a commit's.
        actions_anew=not now.actions_at_success and now.runs.filter(path=now.path, actions=True).exists(),
    )
    # What lies there is not what any success has left: no run may take that for granted before one has succeeded. And
    # an export that somebody has asked for is still to come: this run brings what was there before.
    asked = {"wanted": now.wanted, "wanted_ref": now.wanted_ref}
    Export.objects.filter(pk=now.pk).update(path_at_success="", **asked)
    return run


def commits_brought(export: Export) -> list[str]:
    """Commits of which the export brought files to its place, or tried, since the place is its own; the newest first.
    Not the last one: what that has is wanted."""
    refs: list[str] = []
    for run in export.runs.order_by("-pk")[: 10 * MOST_COMMITS]:
        if run.path != export.path or len(refs) >= MOST_COMMITS:
            break
        refs += [ref for ref in (run.ref, run.base, *run.attempted) if ref]
        if not run.base and not run.repairs_id:
            break  # nothing was known of the place before this one
    return [ref for ref in dict.fromkeys(refs) if ref != export.last_success_ref][:MOST_COMMITS]


def narrow(run: ExportRun, units: Sequence[Unit]) -> list[Unit]:
    """Only where something drifted, if all of it is named; else everywhere. What was broken off has not seen all, and
    hides what an earlier one found."""
    found = ExportVerification.objects.filter(pk=run.repairs_id).first()
    if found is None or found.outcome != ExportVerification.Outcome.DRIFTED:
        return list(units)
    wanted = found.drift.all() if run.attempted else found.drift.exclude(kind=Kind.FOREIGN)
    number = found.drifted if run.attempted else found.missing + found.different
    keys = sorted(bytes(key) for key in wanted.values_list("key", flat=True))
    return list(narrowed(units, keys)) if len(keys) == number else list(units)
