"""What the pages of exports show of one: its state in words, its run as a timeline, where its files are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max

from core.export_places import status_uri
from core.export_words import ExportFacts, RunFacts, Told, tell
from core.exporting import State, status_text
from core.phrases import count
from exports.models import Export, ExportDirectory, ExportRun
from exports.services import KIND, subject_of
from mirrors.models import Duty

GOOD, NOW, BAD, NOT_YET = "done", "now", "blocked", ""


@dataclass(frozen=True, slots=True)
class ExportReading:
    """An export with its last run, and what is said of it."""

    export: Export
    run: ExportRun | None
    told: Told
    as_of: datetime

    @property
    def active(self) -> bool:
        """Whether something is going on that somebody may watch."""
        return self.run is not None and self.run.ended_at is None and not self.export.paused

    @property
    def behind(self) -> bool | None:
        """Whether the branch has moved on since the last complete export; None before either is known."""
        if not self.export.head or not self.export.last_success_ref:
            return None
        return self.export.head != self.export.last_success_ref


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a run: `rung` as the ladder's classes are called."""

    name: str
    rung: str
    note: str


def readings(exports: Sequence[Export], now: datetime) -> list[ExportReading]:
    """All in three queries, those that need somebody first."""
    keys = [export.pk for export in exports]
    last = ExportRun.objects.filter(export__in=keys).order_by().values("export").annotate(last=Max("pk"))
    runs = {run.export_id: run for run in ExportRun.objects.filter(pk__in=[row["last"] for row in last])}
    failing = Duty.objects.filter(kind=KIND, subject__in=[subject_of(one) for one in exports], failures__gt=0)
    retrying = {-subject: outcome for subject, outcome in failing.values_list("subject", "outcome")}
    found = [_reading(export, runs.get(export.pk), retrying.get(export.pk, ""), now) for export in exports]
    return sorted(found, key=lambda one: (-one.told.state.severity, str(one.export)))


def _reading(export: Export, run: ExportRun | None, retrying: str, now: datetime) -> ExportReading:
    facts = ExportFacts(
        branch=export.branch,
        standing=export.standing(),
        head=export.head,
        error=export.error,
        look_error=export.look_error,
        run=run and _facts(run),
        succeeded_at=export.succeeded_at,
        retrying=retrying,
    )
    return ExportReading(export, run, tell(facts, now), now)


def _facts(run: ExportRun) -> RunFacts:
    return RunFacts(
        ref=run.ref,
        phase=run.phase,
        started_at=run.started_at,
        ended_at=run.ended_at,
        base=run.base,
        to_copy=run.to_copy,
        to_delete=run.to_delete,
        through=run.copied + run.skipped + run.deleted,
        failed=run.failed,
    )


# --- the timeline -----------------------------------------------------------------------------------------------------

_STEPS = (
    ("Plan", ("plan",)),
    ("Copy", ("clear", "copy", "last")),
    ("Markers", ("markers",)),
    ("Manifest", ("manifest",)),
    ("Status", ("status",)),
)
_ORDER = [phase for _, phases in _STEPS for phase in phases] + ["done"]


def steps_of(run: ExportRun) -> list[Step]:
    """Plan, copy, markers, manifest, status: what of it is done, and where it stands or stopped."""
    notes = {
        "Plan": _plan_note(run),
        "Copy": _copy_note(run),
        "Markers": _markers_note(run),
        "Manifest": _manifest_note(run),
        "Status": _status_note(run),
    }
    return [Step(name, _rung(run, phases), notes.get(name, "") or "—") for name, phases in _STEPS]


def _rung(run: ExportRun, phases: Sequence[str]) -> str:
    at = _ORDER.index(run.phase)
    if at > _ORDER.index(phases[-1]):
        return GOOD
    if run.phase not in phases:
        return NOT_YET
    return BAD if run.outcome == State.FAILED else NOW


def _plan_note(run: ExportRun) -> str:
    if run.phase == "plan":
        return ""
    deletes = f", {run.to_delete:,} to remove" if run.to_delete else ""
    return f"{run.to_copy:,} to copy{deletes}"


def _copy_note(run: ExportRun) -> str:
    if run.phase in ("plan", "clear"):
        return ""
    failed = f", {run.failed:,} failed" if run.failed else ""
    there = f", {run.skipped:,} there already" if run.skipped else ""
    return f"{run.copied:,} copied{there}{failed}"


def _markers_note(run: ExportRun) -> str:
    if run.phase in ("plan", "clear"):
        return ""
    states = list(run.directories.order_by().values_list("state", flat=True)[:10_000])
    if not states:
        return "none asked for" if not run.patterns else "no directory matches"
    written = states.count(ExportDirectory.State.WRITTEN)
    held = states.count(ExportDirectory.State.HELD)
    return f"{written:,} of {len(states):,}" + (f" · {held:,} held back" if held else "")


def _manifest_note(run: ExportRun) -> str:
    if _ORDER.index(run.phase) <= _ORDER.index("manifest"):
        return ""
    if not run.status_path:
        return "no status path"
    return "none: files failed" if run.failed else "written"


def _status_note(run: ExportRun) -> str:
    return run.outcome or ""


# --- the status file --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatusFile:
    """The status file of a run as it was written, or will be."""

    uri: str
    text: str


def status_file(run: ExportRun) -> StatusFile | None:
    """None where no status path is configured, or the run goes on."""
    if not run.status_path or not run.outcome:
        return None
    export = run.export
    errors = max(1, run.failed) if run.outcome == State.FAILED else 0
    repaired = run.outcome == State.FAILED and export.state == State.REPAIRED
    state = State.REPAIRED if repaired else State(run.outcome)
    return StatusFile(
        status_uri(run.status_path, export.repository, export.branch, run.ref), status_text(state, errors)
    )


def files_word(number: int) -> str:
    """A number of files with its noun."""
    return count(number, "file")
