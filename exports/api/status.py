"""An export's status as its page has it: step by step, with what failed, what was written, what was proven."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from deployment.wiring import region_settings
from exports.api.serializers import ExportStatus, status_json
from exports.models import ExportRun
from exports.status.export import ExportSummary, proof_of
from exports.status.failure_counts import by_reason, status_file
from exports.status.timeline import Progress, RunStep, progress_of, steps_of
from web.schemas import number_or_null, text_or_null, time_or_null
from web.serializers import rfc3339


class ExportStepAnswer(serializers.Serializer):
    """A step of a run."""

    name = serializers.CharField()
    state = serializers.CharField(help_text="done, at work, failed or not done")
    note = text_or_null()
    began_at = time_or_null()
    ended_at = time_or_null()


class ProgressAnswer(serializers.Serializer):
    """How far a run is; the pace is that since its copying began."""

    files = serializers.IntegerField()
    files_planned = serializers.IntegerField()
    files_per_second = number_or_null()
    bytes_per_second = number_or_null()
    eta = time_or_null()


class ReasonAnswer(serializers.Serializer):
    """So many files failed for a reason."""

    reason = serializers.CharField()
    files = serializers.IntegerField()
    example = serializers.CharField(allow_blank=True)


class StatusFileAnswer(serializers.Serializer):
    """What the run left at the status path."""

    uri = serializers.CharField()
    content = serializers.CharField()
    for_programs = serializers.CharField(help_text="address of the status as JSON")
    manifest = text_or_null()


class ProvenAnswer(serializers.Serializer):
    """The last verification of the export path that came to an answer."""

    ref = serializers.CharField()
    outcome = serializers.CharField()
    drifted = serializers.IntegerField()
    ended_at = serializers.DateTimeField()


class WholeExportStatus(ExportStatus):
    """All that the page of an export says."""

    steps = ExportStepAnswer(many=True)
    progress = ProgressAnswer(allow_null=True)
    failures_by_reason = ReasonAnswer(many=True)
    status_file = StatusFileAnswer(
        allow_null=True,
        help_text="null where there is no status path, before the end, and once a later run has written that file",
    )
    proven = ProvenAnswer(allow_null=True)
    route = text_or_null()
    crosses_regions = serializers.BooleanField(
        allow_null=True, help_text="whether every file leaves a region on its way; null: unknown"
    )


def whole_status_json(reading: ExportSummary) -> dict[str, Any]:
    """With a number of queries that doesn't grow."""
    run, route = reading.run, region_settings.export_route(reading.export.region, reading.export.path)
    return {
        **status_json(reading),
        **(_of_run(reading, run) if run else _NO_RUN),
        "proven": _proven_json(reading),
        "route": route.sentence if route else None,
        "crosses_regions": route.crosses if route else None,
    }


_NO_RUN = {"steps": [], "progress": None, "failures_by_reason": [], "status_file": None}


def _of_run(reading: ExportSummary, run: ExportRun) -> dict[str, Any]:
    run.export = reading.export
    written = status_file(run)
    return {
        "steps": [_step_json(step) for step in steps_of(run, reading.export.verifications.first())],
        "progress": _progress_json(progress_of(run, reading.as_of, going_on=reading.active)),
        "failures_by_reason": [
            {"reason": group.reason, "files": group.number, "example": group.example} for group in by_reason(run)
        ],
        "status_file": written
        and {
            "uri": written.uri,
            "content": written.text,
            "for_programs": written.for_programs,
            "manifest": written.manifest or None,
        },
    }


def _step_json(step: RunStep) -> dict[str, Any]:
    note = None if step.note == "—" else step.note
    times = {"began_at": rfc3339(step.began_at), "ended_at": rfc3339(step.ended_at)}
    return {"name": step.name.lower(), "state": step.word, "note": note, **times}


def _progress_json(progress: Progress) -> dict[str, Any]:
    return {
        "files": progress.through,
        "files_planned": progress.whole,
        "files_per_second": None if progress.rate is None else round(progress.rate, 3),
        "bytes_per_second": None if progress.bytes_rate is None else round(progress.bytes_rate, 1),
        "eta": rfc3339(progress.eta),
    }


def _proven_json(reading: ExportSummary) -> dict[str, Any] | None:
    verification = proof_of(reading.export)
    if verification is None:
        return None
    proven = {"ref": verification.ref, "outcome": verification.outcome, "drifted": verification.drifted}
    return proven | {"ended_at": rfc3339(verification.ended_at)}
