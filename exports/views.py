"""The pages of exports: the list, one export, its form. Each click is a POST that also works as a plain form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.errors import LakeMirrorError
from core.policies import branch_arn
from exports import services
from exports.api import visible
from exports.forms import ExportForm
from exports.models import Export, ExportRun
from exports.readings import readings, status_file, steps_of
from lakemirror_site.errors import status_of
from mirrors import clock
from mirrors.page_parts import answered, page_of_rows, whole_or_part
from rbac import services as rbac

SECTION = {"section": "exports"}
RUNS, FAILURES = 10, 50


@never_cache
@require_safe
def export_list(request: HttpRequest) -> HttpResponse:
    """All exports whose branches the user may read, those that need somebody first."""
    rbac.require(request.user)
    now = clock.now()
    found = readings(list(Export.objects.filter(pk__in=visible(request.user))), now)
    context = SECTION | {"readings": found, "now": now, "active": any(one.active for one in found)}
    return render(request, whole_or_part(request, "exports/list.html", "exports/_list.html"), context)


@never_cache
@require_safe
def export_detail(request: HttpRequest, number: int) -> HttpResponse:
    """One export: its run as a timeline, what failed, its status file, the runs before."""
    export, now = find_visible(request, number), clock.now()
    reading = readings([export], now)[0]
    run = reading.run
    context = SECTION | {
        "reading": reading,
        "export": export,
        "run": run,
        "steps": steps_of(run) if run else [],
        "failures": page_of_rows(request, run.failures.all(), "pk", newest=False) if run else None,
        "status_file": status_file(run) if run else None,
        "runs": export.runs.order_by("-pk")[:RUNS],
        "now": now,
        **(_progress(run) if run else {}),
        **_proof(export),
        **_rights(request, export),
    }
    return render(request, whole_or_part(request, "exports/detail.html", "exports/_detail.html"), context)


@never_cache
def export_new(request: HttpRequest) -> HttpResponse:
    """The form of a new export. What was typed stays there, whatever becomes of it."""
    rbac.require(request.user)
    if request.method != "POST":
        return _show(request, ExportForm.fresh())
    form = ExportForm(request.POST)
    if not form.is_valid():
        return _show(request, form, 400)
    given = form.cleaned_data
    arn = branch_arn(given["repository"], given["branch"])
    rbac.require(request.user, ("fs:ExportConfig", arn))
    if Export.objects.of_branch(given["region"], given["repository"], given["branch"]).exists():
        form.add_error("branch", "This branch is exported already: edit that export.")
        return _show(request, form, 409)
    return _save(request, form, given["region"], given["repository"], given["branch"])


@never_cache
def export_edit(request: HttpRequest, number: int) -> HttpResponse:
    """Change how a branch is exported; its state of now is exported at once."""
    export = find_visible(request, number)
    if request.method != "POST":
        return _show(request, ExportForm.of(export), export=export)
    rbac.require(request.user, ("fs:ExportConfig", branch_arn(export.repository, export.branch)))
    form = ExportForm(request.POST, initial=ExportForm.of(export).initial).pinned()
    if not form.is_valid():
        return _show(request, form, 400, export=export)
    return _save(request, form, export.region, export.repository, export.branch, export=export)


def _save(
    request: HttpRequest, form: ExportForm, region: str, repository: str, branch: str, **context: Any
) -> HttpResponse:
    try:
        export, new = services.export_set(
            actor=request.user, region=region, repository=repository, branch=branch, wish=form.wish, request=request
        )
    except LakeMirrorError as error:
        form.refuse(error)
        return _show(request, form, int(status_of(error) or 500), **context)
    done = "is configured" if new else "is changed"
    messages.success(request, f"The export of {branch} {done}. Its state of now is exported at once.")
    return redirect("export", export.pk)


def _show(request: HttpRequest, form: ExportForm, status: int = 200, **context: Any) -> HttpResponse:
    return render(request, "exports/form.html", SECTION | {"form": form, **context}, status=status)


# --- clicks -----------------------------------------------------------------------------------------------------------


@require_POST
def export_run(request: HttpRequest, number: int) -> HttpResponse:
    """Export the branch's head of now."""
    export = find_visible(request, number)
    run = partial(services.export_run, actor=request.user, export=export, request=request)
    return _carry_out(request, export, run, f"Queued: the head of {export.branch} is exported now.")


@require_POST
def export_repair(request: HttpRequest, number: int) -> HttpResponse:
    """Resume what failed."""
    export = find_visible(request, number)
    repair = partial(services.export_repair, actor=request.user, export=export, request=request)
    return _carry_out(request, export, repair, "Queued: the export goes on; what is there already is not copied again.")


@require_POST
def export_verify(request: HttpRequest, number: int) -> HttpResponse:
    """Compare the destination with the last complete export."""
    export = find_visible(request, number)
    verify = partial(services.export_verify, actor=request.user, export=export, request=request)
    return _carry_out(request, export, verify, "Queued: the destination is compared with the last complete export.")


@require_POST
def export_pause(request: HttpRequest, number: int, paused: bool) -> HttpResponse:
    """Stop, or go on."""
    export = find_visible(request, number)
    told = (
        "Paused: it stops after what is being copied right now." if paused else "Resumed: it goes on where it stopped."
    )
    pause = partial(services.export_pause, actor=request.user, export=export, paused=paused, request=request)
    return _carry_out(request, export, pause, told)


@never_cache
def export_delete(request: HttpRequest, number: int) -> HttpResponse:
    """Say what goes and what stays, then delete."""
    export = find_visible(request, number)
    if request.method != "POST":
        return render(request, "exports/delete.html", SECTION | {"export": export})
    services.export_delete(
        actor=request.user, export=export, reason=request.POST.get("reason", "")[:1000], request=request
    )
    messages.success(request, f"The export of {export.branch} is deleted. The files at {export.path} stay.")
    return redirect("exports")


# --- shared -----------------------------------------------------------------------------------------------------------


def find_visible(request: HttpRequest, number: int) -> Export:
    """The export, if the user may read its branch. Raises Http404."""
    rbac.require(request.user)
    export = Export.objects.filter(pk=number, deleting=False).first() if number < 10**18 else None
    if export is None or not rbac.allowed(request.user, "fs:ReadBranch", branch_arn(export.repository, export.branch)):
        raise Http404(f"no export {number}")
    return export


def _progress(run: ExportRun) -> dict[str, Any]:
    return {
        "took": (run.ended_at - run.started_at).total_seconds() if run.ended_at else None,
        "through": run.copied + run.skipped + run.deleted,
        "whole": run.to_copy + run.to_delete,
    }


def _proof(export: Export) -> dict[str, Any]:
    """The last verification with what it names, and the last one that came to an answer."""
    verification = export.verifications.first()
    going_on = verification is not None and verification.ended_at is None
    provable = export.last_success_ref and export.path_at_success == export.path
    return {
        "verification": verification,
        "proven": export.verifications.filter(outcome__in=["equal", "drifted"]).first(),
        "drift": list(verification.drift.all()[:FAILURES]) if verification else [],
        "comparing": going_on,
        "verifiable": provable and not going_on and export.state != "in-progress",
    }


def _rights(request: HttpRequest, export: Export) -> dict[str, bool]:
    arn = branch_arn(export.repository, export.branch)
    return {
        "may_configure": rbac.allowed(request.user, "fs:ExportConfig", arn),
        "may_pause": rbac.allowed(request.user, "fs:PauseExport", arn),
        "may_run": rbac.allowed(request.user, "fs:RunExport", arn),
    }


def _carry_out(request: HttpRequest, export: Export, verb: Callable[[], object], told: str) -> HttpResponse:
    return answered(request, verb, told, reverse("export", args=[export.pk]))
