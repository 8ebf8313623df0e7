"""What a run could not do, counted by reason; and the files that it leaves at the status path."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Min

from core.exporting.destinations import status_uri, timed_uris
from core.exporting.failure_reasons import Reason, reason_words
from core.exporting.state_machine import State
from exports.models import ExportManifest, ExportRun

COMPARED = 1_000
"""So many failures are compared with each other; about so many end a run."""
ADDRESSES = "these files"
REASONS = [reason.value for reason in Reason]


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """So many files failed for a reason; `example` is what was told of one of them."""

    reason: str
    number: int
    example: str
    shared: str = ""
    """What was told of all of them alike but for their addresses; "" if it differs."""

    @property
    def words(self) -> str:
        """The reason as people read it."""
        return reason_words(self.reason)


def by_reason(run: ExportRun) -> Sequence[ReasonCount]:
    """The most frequent first, in two queries."""
    rows = run.failures.order_by().values("reason").annotate(number=Count("pk"), example=Min("detail"))
    shared = _shared(run)
    return [
        ReasonCount(row["reason"], row["number"], row["example"], shared.get(row["reason"], ""))
        for row in rows.order_by("-number", "reason")
    ]


def _shared(run: ExportRun) -> dict[str, str]:
    """By reason what is told of all of its files alike, where each one's address stands for it."""
    told: dict[str, set[str]] = defaultdict(set)
    for failure in run.failures.order_by("pk")[:COMPARED]:
        told[failure.reason].add(failure.detail.replace(f"{run.path.rstrip('/')}/{failure.name}", ADDRESSES))
    return {reason: details.pop() for reason, details in told.items() if len(details) == 1}


@dataclass(frozen=True, slots=True)
class StatusFile:
    """The status file of a run as it stands there; beside it the status for programs, and the manifest of a success."""

    uri: str
    text: str
    for_programs: str
    manifest: str


def has_later_status(run: ExportRun) -> bool:
    """Whether a later run of the same commit has the same status file: what that says is told of the later one."""
    return run.export.runs.filter(pk__gt=run.pk, ref=run.ref, status_path=run.status_path).exists()


def status_file(run: ExportRun) -> StatusFile | None:
    """None where no status path is configured, the run goes on, it could not be written, or a later run has written
    it."""
    if not run.outcome or not run.told:
        return None
    export, place = run.export, run.told_path
    timed = timed_uris(place, export.repository, export.branch, run.started_at)
    return StatusFile(
        status_uri(place, export.repository, export.branch, run.ref),
        run.told,
        timed.status,
        timed.manifest if run.outcome == State.SUCCESS and is_listed(run) else "",
    )


def is_listed(run: ExportRun) -> bool:
    """Whether the manifest of a run is there: it was written, and not removed since. Those of versions before are."""
    return run.listed is None or (run.listed and ExportManifest.objects.filter(run=run.pk).exists())
