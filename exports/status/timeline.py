"""A run as a timeline: what of it is done, when, where it stands or stopped, how fast it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Count

from core.exporting.state_machine import State
from core.text.eta import expected_end, per_second
from core.text.phrases import count
from exports.models import ExportDirectory, ExportRun, ExportVerification
from exports.status.failure_counts import is_listed

GOOD, NOW, BAD, NOT_YET = "done", "now", "blocked", ""
_WORDS = {GOOD: "done", NOW: "at work", BAD: "failed", NOT_YET: "not done"}
_STEPS = (
    ("Plan", ("plan",)),
    ("Copy", ("clear", "copy", "last")),
    ("Markers", ("markers",)),
    ("Manifest", ("manifest",)),
    ("Status", ("status",)),
)
_ORDER = [phase for _, phases in _STEPS for phase in phases] + ["done"]


@dataclass(frozen=True, slots=True)
class RunStep:
    """A step of a run: `rung` as the ladder's classes are called; times are None where nobody knows them."""

    name: str
    rung: str
    note: str
    began_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        if self.began_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.began_at).total_seconds()

    @property
    def word(self) -> str:
        """How it stands, for who doesn't see the mark."""
        return _WORDS[self.rung]


def steps_of(run: ExportRun, verification: ExportVerification | None = None) -> list[RunStep]:
    """Plan, copy, markers, manifest, status, and whether the destination was verified since, by `verification`."""
    notes = {
        "Plan": _plan_note(run),
        "Copy": _copy_note(run),
        "Markers": _markers_note(run),
        "Manifest": _manifest_note(run),
        "Status": run.outcome,
    }
    steps = [
        RunStep(name, _rung(run, name, phases), notes[name] or "—", *_times(run, phases)) for name, phases in _STEPS
    ]
    return [*steps, _verified(run, verification)]


def _rung(run: ExportRun, name: str, phases: Sequence[str]) -> str:
    at, last = _ORDER.index(run.phase), _ORDER.index(phases[-1])
    if run.failed and at >= _ORDER.index("copy") and name != "Plan":
        return _rung_of_failing(run, name, past=at > last)
    if at > last:
        return GOOD
    if run.phase not in phases:
        return NOT_YET
    return BAD if run.outcome == State.FAILED else NOW


def _rung_of_failing(run: ExportRun, name: str, *, past: bool) -> str:
    """What failed is a file: that stands at the copying, and nothing after it is as it should be."""
    over = past or bool(run.outcome)
    if name == "Copy":
        return BAD if over else NOW
    return NOW if not over and run.phase == name.lower() else NOT_YET


def _times(run: ExportRun, phases: Sequence[str]) -> tuple[datetime | None, datetime | None]:
    began = run.started_at if phases[0] == "plan" else _start_of(run, phases[0])
    following = _ORDER[_ORDER.index(phases[-1]) + 1]
    ended = _start_of(run, following)
    if ended is None and (run.phase in phases or following == "done"):
        ended = run.ended_at
    return began, ended if began else None


def _start_of(run: ExportRun, phase: str) -> datetime | None:
    at = run.begun.get(phase)
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _plan_note(run: ExportRun) -> str:
    if run.phase == "plan":
        return ""
    deletes = f", {run.to_delete:,} to remove" if run.to_delete else ""
    lost = (
        f" · {', '.join(commit[:8] for commit in run.lost)} missing at the source: compared instead" if run.lost else ""
    )
    return f"{run.to_copy:,} to copy{deletes}{lost}"


def _copy_note(run: ExportRun) -> str:
    if run.phase in ("plan", "clear"):
        return ""
    failed = f", {run.failed:,} failed" if run.failed else ""
    skipped = f", {run.skipped:,} there already" if run.skipped else ""
    left_alone = (
        f" · {run.kept:,} kept, since this export did not write them: {_some(run.kept_keys)}" if run.kept else ""
    )
    return f"{run.copied:,} copied{skipped}{failed}{left_alone}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


def _markers_note(run: ExportRun) -> str:
    if run.phase in ("plan", "clear"):
        return ""
    counted = run.directories.order_by().values_list("state").annotate(number=Count("pk"))
    states: dict[str, int] = dict(counted)
    if not states:
        return "no markers configured" if not run.patterns else "no directory matches"
    held = states.get(ExportDirectory.State.HELD, 0)
    written = f"{states.get(ExportDirectory.State.WRITTEN, 0):,} of {sum(states.values()):,}"
    return written + (f" · {held:,} held back" if held else "")


def _manifest_note(run: ExportRun) -> str:
    if _ORDER.index(run.phase) <= _ORDER.index("manifest"):
        return ""
    if not run.status_path:
        return "no status path"
    if run.failed:
        return "none: files failed"
    if run.listed is False:
        return "none due"
    return "written" if is_listed(run) else "removed, since newer ones exist"


def _verified(run: ExportRun, it: ExportVerification | None) -> RunStep:
    """The last verification, if it is of this run's commit and place, and later than it."""
    same = it and (it.ref, it.path) == (run.ref, run.path)
    after = same and run.ended_at and it.started_at >= run.ended_at
    if not it or not after or it.outcome == ExportVerification.Outcome.OUTDATED:
        return RunStep("Verify", NOT_YET, "not verified yet" if run.outcome == State.SUCCESS else "—")
    notes = {"": (NOW, "being compared"), "equal": (GOOD, "equal · 0 drifted"), "failed": (BAD, "unknown")}
    rung, note = notes.get(it.outcome, (BAD, f"{it.drifted:,} drifted"))
    return RunStep("Verify", rung, note, it.started_at, it.ended_at)


# --- how fast ---------------------------------------------------------------------------------------------------------

SAMPLE_FILES = 20
SAMPLE_TIME = timedelta(seconds=5)
"""Before so many files are through, for so long, nobody can say when the rest will be: the first ones wait for
connections, and for Spark to start."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. `rate` in files, `bytes_rate` in bytes a second since the copying began; None: unknown."""

    through: int
    whole: int
    rate: float | None = None
    bytes_rate: float | None = None
    eta: datetime | None = None
    seconds_left: float | None = None

    @property
    def words(self) -> str:
        """In words: "63 of 120 files"."""
        return f"{self.through:,} of {count(self.whole, 'file')}"


def progress_of(run: ExportRun, now: datetime, *, going_on: bool = True) -> Progress:
    """What is through, of all that is planned; pace and expected end while files are being copied."""
    through = run.copied + run.skipped + run.deleted + run.kept + run.failed
    whole = run.to_copy + run.to_delete
    began = _start_of(run, "copy")
    if began is None or not going_on or run.ended_at or run.phase not in ("copy", "last"):
        return Progress(through, whole)
    pace, bytes_pace = per_second(through, began, now), per_second(run.copied_bytes, began, now)
    if through < SAMPLE_FILES or now - began < SAMPLE_TIME:
        return Progress(through, whole, pace, bytes_pace)
    end = expected_end(through, whole, began, now)
    return Progress(through, whole, pace, bytes_pace, end, end and (end - now).total_seconds())
