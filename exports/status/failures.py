"""What a run could not do, counted by reason; and the files that it leaves at the status path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Min

from core.exporting.destinations import status_uri, timed_uris
from core.exporting.failures import Reason, reason_words
from core.exporting.state_machine import State, status_text
from exports.engine.failures import UNWRITTEN
from exports.models import ExportRun

REASONS = [reason.value for reason in Reason]


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """So many files failed for a reason; `example` is what was told of one of them."""

    reason: str
    number: int
    example: str

    @property
    def words(self) -> str:
        """The reason as people read it."""
        return reason_words(self.reason)


def by_reason(run: ExportRun) -> Sequence[ReasonCount]:
    """The most frequent first, in one query."""
    rows = run.failures.order_by().values("reason").annotate(number=Count("pk"), example=Min("detail"))
    return [ReasonCount(row["reason"], row["number"], row["example"]) for row in rows.order_by("-number", "reason")]


@dataclass(frozen=True, slots=True)
class StatusFile:
    """The status file of a run as it was written; beside it the status for programs, and the manifest of a success."""

    uri: str
    text: str
    for_programs: str
    manifest: str


def status_file(run: ExportRun) -> StatusFile | None:
    """None where no status path is configured, the run goes on, or it could not be written."""
    if not run.status_path or not run.outcome:
        return None
    export = run.export
    errors = max(1, run.failed) if run.outcome == State.FAILED else 0
    repaired = run.outcome == State.FAILED and export.state == State.REPAIRED and export.current_ref == run.ref
    if UNWRITTEN in run.error and not repaired:
        return None
    state = State.REPAIRED if repaired else State(run.outcome)
    timed = timed_uris(run.status_path, export.repository, export.branch, run.started_at)
    return StatusFile(
        status_uri(run.status_path, export.repository, export.branch, run.ref),
        status_text(state, errors),
        timed.status,
        timed.manifest if state is State.SUCCESS else "",
    )
