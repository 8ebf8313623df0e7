"""The list of exports, and what is done to several of them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.access.policies import branch_arn
from core.errors import Invalid, LakeMirrorError
from core.exporting.explain import STATES
from db import clock
from db.labels import with_labels
from exports.api.exports import narrowed, visible
from exports.models import Export
from exports.services import exports as services
from exports.status.export import ExportSummary, export_statuses
from exports.views.list_query import ListQuery, needing, tell
from rbac import services as rbac
from web.pages import whole_or_part

PAGE = 30


@never_cache
@require_safe
def export_list(request: HttpRequest) -> HttpResponse:
    """The exports that the address asks for, of those whose branches the user may read; who needs somebody first."""
    rbac.require(request.user)
    now, query = clock.now(), ListQuery.of(request.GET)
    seen = Export.objects.filter(pk__in=visible(request.user))
    found = with_labels(narrowed(seen, query.find), query.labels)
    chosen = query.chosen(export_statuses(list(found), now))
    page = Paginator(chosen, PAGE).get_page(query.page)
    shown = list(page)
    context = {
        "section": "exports",
        "query": query,
        "readings": shown,
        "page": page,
        "summary": tell(chosen),
        "none": not (chosen or query.find or query.states or query.labels),
        "sees_all": rbac.allowed(request.user, "fs:ReadBranch", branch_arn("*", "*")),
        "states": STATES,
        "actionable": _may_act(request, shown),
        "now": now,
        "active": any(reading.moving for reading in shown),
        "changes": ", ".join(f"{reading.export}: {reading.told.word}" for reading in needing(shown)),
    }
    return render(request, whole_or_part(request, "exports/list.html", "exports/_list.html"), context)


def _may_act(request: HttpRequest, shown: list[ExportSummary]) -> set[int]:
    """The numbers of the exports whose one action the user may do."""
    needs = {"resume": "fs:PauseExport", "delete": "fs:ExportConfig"}
    return {
        reading.export.pk
        for reading in shown
        if rbac.allowed(request.user, needs.get(reading.told.action, "fs:RunExport"), reading.export.arn)
    }


# --- several at once --------------------------------------------------------------------------------------------------

VERBS: Mapping[str, tuple[str, Callable[..., object]]] = {
    "run": ("Queued", services.export_run),
    "repair": ("Repair queued", services.export_repair),
    "pause": ("Paused", partial(services.export_pause, paused=True)),
    "resume": ("Resumed", partial(services.export_pause, paused=False)),
}


@require_POST
def exports_change(request: HttpRequest) -> HttpResponse:
    """Do one thing to each of the chosen exports; those that refuse are told one by one, the others go on."""
    rbac.require(request.user)
    text, verb = VERBS.get(request.POST.get("verb", ""), ("", None))
    if verb is None:
        raise Invalid("choose an action", field="verb")
    exports = _chosen(request)
    refused = {export.pk: why for export in exports if (why := _refusal(request, verb, export))}
    done = [_name(export) for export in exports if export.pk not in refused]
    if done:
        messages.success(request, f"{text}: {', '.join(done)}.")
    for export in exports:
        if export.pk in refused:
            messages.error(request, f"{_name(export)}: {refused[export.pk]}")
    if not exports:
        messages.error(request, "Select at least one export first.")
    if request.htmx:
        return render(request, "_notices.html")
    return redirect(f"{reverse('exports')}?{request.GET.urlencode()}")


def _chosen(request: HttpRequest) -> list[Export]:
    given = request.POST.getlist("export")[:PAGE]
    numbers = {int(text) for text in given if text.isascii() and text.isdigit() and len(text) < 19}
    return list(Export.objects.filter(pk__in=numbers & set(visible(request.user))))


def _name(export: Export) -> str:
    return f"{export.repository} · {export.which}"


def _refusal(request: HttpRequest, verb: Callable[..., Any], export: Export) -> str:
    """Do it; why not, or ""."""
    try:
        verb(actor=request.user, export=export)
    except LakeMirrorError as error:
        return str(error)
    return ""
