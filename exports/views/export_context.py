"""What stands on the page of one export: the run that is looked at, with all that is known of it, and the others."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.http import Http404, HttpRequest

from deployment.wiring import region_settings
from exports.engine import drift_repairs
from exports.models import Export, ExportRun
from exports.status.export import ExportSummary, proof_of
from exports.status.failure_counts import REASONS, by_reason, has_later_status, status_file
from exports.status.run_words import in_words
from exports.status.timeline import progress_of, steps_of
from rbac import services as rbac
from web.pages import page_of_rows, with_query
from web.paging import number_of

RUNS, FAILURES, DRIFT, SKIPPED = 10, 20, 50, 10


def detail_of(request: HttpRequest, reading: ExportSummary) -> dict[str, Any]:
    """All of the page, in a number of queries that doesn't grow. `?run=` looks at an earlier run. Raises Http404."""
    export = reading.export
    run = _run(request, reading)
    return {
        "reading": reading,
        "export": export,
        "run": run,
        "last": run is None or run == reading.run,
        "now": reading.as_of,
        "route": region_settings.export_route(export.region, export.path),
        **(_of_run(request, reading, run) if run else {}),
        **_history(request, export, reading.as_of),
        **_proof(export),
        **_rights(request, export),
    }


def _run(request: HttpRequest, reading: ExportSummary) -> ExportRun | None:
    """The run that is looked at: the last one unless the address names another."""
    given = request.GET.get("run", "")
    run = reading.export.runs.filter(pk=number_of(given, "run")).first() if given else reading.run
    if given and run is None:
        raise Http404(f"no run {given}")
    if run is not None:
        run.export = reading.export
    return run


def _of_run(request: HttpRequest, reading: ExportSummary, run: ExportRun) -> dict[str, Any]:
    reason = request.GET.get("reason", "")
    rows = run.failures.filter(reason=reason) if reason in REASONS else run.failures.all()
    reasons = by_reason(run)
    return {
        "steps": steps_of(run, reading.export.verifications.first()),
        "progress": progress_of(run, reading.as_of, going_on=reading.active),
        "took": (run.ended_at - run.started_at).total_seconds() if run.ended_at else None,
        "reasons": reasons,
        "reason": reason if reason in REASONS else "",
        "shared": {group.reason for group in reasons if group.shared},
        "named_number": sum(group.number for group in reasons),
        "failures": page_of_rows(request, rows, "pk", newest=False, amount=FAILURES),
        "status_file": status_file(run),
        "has_later_status": has_later_status(run),
        "skipped": list(run.skipped_ones.all()[:SKIPPED]) if run.skipped_commits else [],
    }


def _history(request: HttpRequest, export: Export, now: datetime) -> dict[str, Any]:
    """Some runs, the last one first, and where those before them are."""
    rows, given = export.runs.order_by("-pk"), request.GET.get("before", "")
    some = list((rows.filter(pk__lt=number_of(given, "before")) if given else rows)[: RUNS + 1])
    older = with_query(request, before=some[RUNS - 1].pk) if len(some) > RUNS else ""
    shown = in_words(some[:RUNS], now)
    return {"runs": shown, "older_runs": older, "newest_runs": with_query(request, before=None) if given else ""}


def _proof(export: Export) -> dict[str, Any]:
    """The last verification with what it names, and the last one that came to an answer."""
    verification = export.verifications.first()
    going_on = verification is not None and verification.ended_at is None
    provable = export.last_success_ref and export.path_at_success == export.path
    return {
        "verification": verification,
        "proven": proof_of(export),
        "drift": list(verification.drift.all()[:DRIFT]) if verification else [],
        "comparing": going_on,
        "repairable": not going_on and export.state == "exported-successfully" and drift_repairs.repairable(export),
        "repair": verification and verification.repairs.order_by("-pk").first(),
        "verifiable": provable and not going_on and export.state != "in-progress",
    }


def _rights(request: HttpRequest, export: Export) -> dict[str, bool]:
    return {
        "may_configure": rbac.allowed(request.user, "fs:ExportConfig", export.arn),
        "may_pause": rbac.allowed(request.user, "fs:PauseExport", export.arn),
        "may_run": rbac.allowed(request.user, "fs:RunExport", export.arn),
    }
