"""When does an export start, and what becomes of it? The state machine of continuous export, without any I/O.

A run brings a destination to one commit. Its base is the last commit that arrived whole at the same path: only that
one is known to be there. What later runs tried (`attempted`) they may have written in part, so the next plan looks at
their commits too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from core.errors import Conflict

LOOK_IN_A_RUN = timedelta(minutes=1)
"""So often the branch is looked at while a run goes on."""


class State(StrEnum):
    """Where an export stands; the values are those that status files and the API tell."""

    NEVER = ""
    IN_PROGRESS = "in-progress"
    SUCCESS = "exported-successfully"
    FAILED = "export-failed"
    REPAIRED = "export-repaired"


@dataclass(frozen=True, slots=True)
class ExportSituation:
    """What is known of an export. Refs are commit ids, "" for none; `path` is the one of now."""

    state: State
    path: str
    continuous: bool = False
    paused: bool = False
    wanted: bool = False
    """Somebody asked for an export that has not started: by a change of the configuration."""
    wanted_ref: str = ""
    """The branch's head when they did."""
    last_success_ref: str = ""
    path_at_success: str = ""
    actions: bool = True
    """With what is below `_lakefs_actions/`; `actions_at_success`: whether the last success was."""
    actions_at_success: bool = True
    attempted: tuple[str, ...] = ()
    attempted_path: str = ""
    left: tuple[str, ...] = ()
    """Commits that were brought to this place, or tried there, before the export went to another one and came back."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a run builds upon: the destination holds `base` ("": nothing of ours), and parts of `attempted`."""

    base: str
    attempted: tuple[str, ...]


def is_exported(standing: ExportSituation, head: str) -> bool:
    """Does the destination of now hold this commit, whole?"""
    at_destination = standing.last_success_ref == head and standing.path_at_success == standing.path
    as_wanted = standing.actions == standing.actions_at_success
    return bool(head) and at_destination and as_wanted and not _attempts(standing)


def check_start(standing: ExportSituation, head: str) -> None:
    """Raises Conflict where an export may not be started. One that was repaired always may: where the head is exported
    already, because the path is again that of the last success, its run finds nothing to do and says so."""
    if standing.paused:
        raise Conflict("the export is paused", hint="Resume it first")
    if standing.state is State.IN_PROGRESS:
        raise Conflict("export currently in progress", hint="A newer head is exported automatically when it ends")
    if standing.state is State.FAILED:
        raise Conflict("the last export failed", hint="Repair it first")
    if standing.state is not State.REPAIRED and is_exported(standing, head):
        raise Conflict(f"nothing to export: {head[:8]} has been exported already")


def check_repair(standing: ExportSituation) -> None:
    """Raises Conflict unless there is something to repair."""
    if standing.state is not State.FAILED:
        state = str(standing.state) or "never exported"
        raise Conflict(f"nothing to repair: the export is {state}, not {State.FAILED}")


def starts_by_itself(standing: ExportSituation, head: str) -> bool:
    """Is a run due without anybody's request of this moment? Never after a failure: somebody has to repair it."""
    if standing.paused or standing.state in (State.IN_PROGRESS, State.FAILED) or not head:
        return False
    if standing.state is State.REPAIRED:
        return True
    return is_due(standing) and not is_exported(standing, head)


def is_due(standing: ExportSituation) -> bool:
    """Is what is new to be exported? If not continuously, then until there is what somebody asked for."""
    return standing.continuous or (standing.wanted and not is_exported(standing, standing.wanted_ref))


def basis(standing: ExportSituation) -> Basis:
    """What the next run has to look at. Another path than the last success's holds nothing that we know of."""
    base = standing.last_success_ref if standing.path_at_success == standing.path else ""
    return Basis(base, tuple(ref for ref in _attempts(standing) if ref != base))


def note_attempt(standing: ExportSituation, *refs: str) -> tuple[str, ...]:
    """The commits of which this place may hold something once a run for one of these starts."""
    return (*(attempted for attempted in _attempts(standing) if attempted not in refs), *refs)


def is_overwritten(standing: ExportSituation) -> bool:
    """Nothing goes on, and yet this place may hold something of other commits than the last success: runs have written
    there that the database, come back from a backup, does not know of."""
    return standing.state in (State.NEVER, State.SUCCESS) and bool(standing.last_success_ref and _attempts(standing))


def _attempts(standing: ExportSituation) -> Sequence[str]:
    tried = standing.attempted if standing.attempted_path == standing.path else ()
    return (*(ref for ref in standing.left if ref not in tried), *tried)


def status_text(state: State, signalled_errors: int) -> str:
    """The content of `<REPO>-<BRANCH>-<COMMIT>`."""
    return f"status: {state}, signalled_errors: {signalled_errors}\n"
