"""The pages of one export. Each click is a POST that also works as a plain form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core import labels
from core.errors import Invalid
from db import clock
from exports.engine import drift_repairs
from exports.models import Export
from exports.services import exports
from exports.status.export import export_statuses
from exports.views.export_context import detail_of
from rbac import services as rbac
from web.pages import answered, whole_or_part
from web.pauses import stated_by_form

SECTION = {"section": "exports"}
SHOWN = 10


@never_cache
@require_safe
def export_detail(request: HttpRequest, number: int) -> HttpResponse:
    """One export: its last run as a timeline, or another one, what failed, its status file, the runs before."""
    export, now = find_visible(request, number), clock.now()
    context = SECTION | detail_of(request, export_statuses([export], now)[0])
    return render(request, whole_or_part(request, "exports/detail.html", "exports/_detail.html"), context)


# --- clicks -----------------------------------------------------------------------------------------------------------


@require_POST
def export_run(request: HttpRequest, number: int) -> HttpResponse:
    """Export the branch's head of now."""
    export = find_visible(request, number)
    run = partial(exports.export_run, actor=request.user, export=export)
    return _carry_out(request, export, run, f"Queued: export of the head of {export.branch}.")


@require_POST
def export_repair(request: HttpRequest, number: int) -> HttpResponse:
    """Resume what failed."""
    export = find_visible(request, number)
    repair = partial(exports.export_repair, actor=request.user, export=export)
    return _carry_out(request, export, repair, "Queued: the export restarts and skips files already copied.")


@require_POST
def export_verify(request: HttpRequest, number: int) -> HttpResponse:
    """Compare the destination with the last complete export."""
    export = find_visible(request, number)
    verify = partial(exports.export_verify, actor=request.user, export=export)
    return _carry_out(request, export, verify, "Queued: verification of the destination.")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def export_repair_drift(request: HttpRequest, number: int) -> HttpResponse:
    """Say what is copied again, replaced and perhaps removed, then do it."""
    export = find_visible(request, number)
    if request.method != "POST":
        rbac.require(request.user, ("fs:RunExport", export.arn))
        found = drift_repairs.repairable(export)
        foreign = found.drift.filter(kind="foreign")[:SHOWN] if found else []
        context = {"export": export, "found": found, "foreign": foreign}
        return render(request, "exports/repair_drift.html", SECTION | context)
    remove = request.POST.get("remove_foreign") == "on"
    exports.export_repair_drift(actor=request.user, export=export, remove=remove)
    messages.success(request, "Queued: drifted files are copied again, then the destination is verified.")
    return redirect("export", export.pk)


@require_POST
def export_pause(request: HttpRequest, number: int, paused: bool) -> HttpResponse:
    """Stop, or go on."""
    export = find_visible(request, number)
    message = (
        "Paused: the export stops after the files being copied now."
        if paused
        else "Resumed: the export continues where it stopped."
    )

    def pause() -> None:
        stated = stated_by_form(request.POST) if paused else None
        exports.export_pause(actor=request.user, export=export, paused=paused, stated=stated)

    return _carry_out(request, export, pause, message)


@require_POST
def export_limits(request: HttpRequest, number: int) -> HttpResponse:
    """How fast it may go, from now on."""
    export = find_visible(request, number)

    def change() -> None:
        changes = {name: _limit(request.POST.get(name, ""), name) for name in exports.MOST_PER_SECOND}
        exports.export_limits(actor=request.user, export=export, changes=changes)

    return _carry_out(request, export, change, "Saved: the limits apply within seconds.")


@require_POST
def export_label(request: HttpRequest, number: int) -> HttpResponse:
    """Its labels, all of them."""
    export = find_visible(request, number)

    def change() -> None:
        wanted = labels.parse(request.POST.get("labels", "").split())
        exports.export_label(actor=request.user, export=export, wanted=wanted)

    return _carry_out(request, export, change, "Labels saved.")


def _limit(typed: str, name: str) -> int | None:
    text = typed.strip().replace(",", "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid(f"'{typed[:40]}' is not a whole number", field=name, hint="Leave it empty for no limit")
    return int(text) if text else None


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def export_delete(request: HttpRequest, number: int) -> HttpResponse:
    """Say what goes and what stays, then delete."""
    export = find_visible(request, number)
    if request.method != "POST":
        return render(request, "exports/delete.html", SECTION | {"export": export})
    exports.export_delete(actor=request.user, export=export, reason=request.POST.get("reason", "")[:1000])
    messages.success(request, f"The export of {export.which} is deleted. The files at {export.path} stay.")
    return redirect("exports")


# --- shared -----------------------------------------------------------------------------------------------------------


def find_visible(request: HttpRequest, number: int) -> Export:
    """The export, if the user may read its branch. Raises Http404."""
    rbac.require(request.user)
    export = Export.objects.filter(pk=number, deleting=False).first() if number < 10**18 else None
    if export is None or not rbac.allowed(request.user, "fs:ReadBranch", export.arn):
        raise Http404(f"no export {number}")
    return export


def _carry_out(request: HttpRequest, export: Export, verb: Callable[[], object], message: str) -> HttpResponse:
    return answered(request, verb, message, reverse("export", args=[export.pk]))
