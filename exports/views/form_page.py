"""The form of an export, and what it says while one types: what expressions match, checks, the next run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core.access.policies import branch_arn
from core.errors import Invalid, LakeMirrorError
from db import clock
from exports.models import Export
from exports.preflight.branch_sample import branch_of, first_files
from exports.preflight.change_effects import changes_of
from exports.preflight.checks import Plan, check_plan, require_reading
from exports.preflight.next_run import planned_run
from exports.preflight.pattern_trial import named, try_patterns
from exports.preflight.pick_lists import pick_lists
from exports.services import exports
from exports.services.rights import require_some_configuration
from exports.views.export import SECTION, find_visible
from exports.views.forms import ExportForm
from exports.views.planned_call import api_call, set_command
from rbac import services as rbac
from rbac.signin.form_recovery import GIVEN_BACK, keeps_typed, take
from web.errors import status_of

CHECKS, TRIAL, COST, PICKS = "preflight", "trial", "cost", "picks"
SHOWN = 10
Context = dict[str, Any]


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@keeps_typed
def export_new(request: HttpRequest) -> HttpResponse:
    """The form of a new export. What was typed stays there, whatever becomes of it. Raises Denied for who can configure
    none."""
    require_some_configuration(request.user)
    if request.method != "POST":
        return _begin(request, ExportForm.fresh())
    if _asks(request):
        return _tell(request, ExportForm.typed(request.POST))
    form = ExportForm(request.POST)
    if not form.is_valid():
        return _show(request, form, 400)
    given = form.cleaned_data
    rbac.require(request.user, ("fs:ExportConfig", branch_arn(given["repository"], given["branch"])))
    if Export.objects.named(**form.identity).exists():
        form.add_error("name", "This branch is exported already: edit that export, or give this one a name of its own.")
        return _show(request, form, 409)
    return _save(request, form, form.identity)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@keeps_typed
def export_edit(request: HttpRequest, number: int) -> HttpResponse:
    """Change how a branch is exported; its state of now is exported at once."""
    export = find_visible(request, number)
    if request.method != "POST":
        return _begin(request, ExportForm.of(export), export)
    if _asks(request):
        return _tell(request, ExportForm.typed(request.POST, export), export)
    rbac.require(request.user, ("fs:ExportConfig", export.arn))
    form = ExportForm(request.POST, initial=ExportForm.of(export).initial).pinned()
    if not form.is_valid():
        return _show(request, form, 400, export)
    return _save(request, form, export.identity, export)


def _begin(request: HttpRequest, form: ExportForm, export: Export | None = None) -> HttpResponse:
    """The form, or what somebody had typed into it when their session ended."""
    given = take(request)
    if given is not None:
        messages.info(request, GIVEN_BACK)
        form = ExportForm.typed(given, export)
    return _show(request, form, 200, export, check_now=export is not None or given is not None)


def _save(
    request: HttpRequest, form: ExportForm, identity: Mapping[str, str], export: Export | None = None
) -> HttpResponse:
    plan = form.plan(export)
    try:
        exports.check_setting(actor=request.user, **identity, wish=form.wish)
        summary = check_plan(actor=request.user, plan=plan, writing=True)
        if summary.failed and "anyway" not in request.POST:
            return _show(request, form, 409, export, summary=summary, wrote=True, failing=summary.failed)
        saved, new = exports.export_set(actor=request.user, **identity, wish=form.wish, failed_checks=summary.failed)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show(request, form, int(status_of(error) or 500), export)
    done = "is configured" if new else "is changed"
    messages.success(request, f"The export of {saved.which} {done}. Its current head is being exported.")
    return redirect("export", saved.pk)


# --- what is shown ----------------------------------------------------------------------------------------------------


def _show(
    request: HttpRequest, form: ExportForm, status: int = 200, export: Export | None = None, **extra: Any
) -> HttpResponse:
    shared = {"form": form, "export": export, **_typed(request, form.plan(export))}
    return render(request, "exports/form.html", SECTION | shared | extra, status=status)


def _asks(request: HttpRequest) -> bool:
    """Whether somebody only wants to know, and nothing is to be saved."""
    return request.htmx.target in (CHECKS, TRIAL, COST, PICKS) or "check" in request.POST


def _tell(request: HttpRequest, form: ExportForm, export: Export | None = None) -> HttpResponse:
    """A part of the page, or all of it. What is wrong with a plan is an answer, too: a status of its own would keep it
    from being shown."""
    plan, part = form.plan(export), request.htmx.target
    if part == TRIAL:
        return render(request, "exports/_trial.html", _trial(request, plan))
    if part == COST:
        return render(request, "exports/_first_run.html", _first_run(request, plan) | {"export": export})
    if part == PICKS:
        return render(request, "exports/_picks.html", {"picks": pick_lists(actor=request.user, plan=plan)})
    checked = _checks(request, plan, writing="check" in request.POST)
    if part == CHECKS:
        return render(request, "exports/_checks.html", checked | _typed(request, plan))
    return _show(request, form, 200, export, **_trial(request, plan), **checked, **_first_run(request, plan))


def _typed(request: HttpRequest, plan: Plan) -> Context:
    """What needs nobody's answer: the same as a call and as a command, and what a change will do."""
    context: Context = {
        "api_call": api_call(request, plan),
        "command": set_command(request, plan),
        "export": plan.export,
    }
    if plan.export is not None:
        context["consequences"] = changes_of(plan)
    return context


# --- what is found ----------------------------------------------------------------------------------------------------


def _checks(request: HttpRequest, plan: Plan, *, writing: bool) -> Context:
    if not _is_named(plan):
        return {}
    try:
        preflight = check_plan(actor=request.user, plan=plan, writing=writing)
    except LakeMirrorError as error:
        return {"preflight_refused": str(error)}
    return {"summary": preflight, "wrote": writing}


def _trial(request: HttpRequest, plan: Plan) -> Context:
    """A wrong expression is told also before the branch is named."""
    try:
        exports.check_patterns(plan.wish.patterns)
        if not _is_named(plan):
            return {}
        rbac.require(request.user, ("fs:ExportConfig", branch_arn(plan.repository, plan.branch)))
        require_reading(request.user, plan)
        files = first_files(branch_of(plan.region, plan.repository, plan.branch), actions=plan.actions)
        trial = try_patterns(plan.wish.patterns, files)
    except Invalid as error:
        return {"trial_wrong": str(error)}
    except LakeMirrorError as error:
        return {"trial_refused": str(error)}
    first = {"marked": named(trial.marked[:SHOWN]), "last_keys": named(trial.last_keys[:SHOWN])}
    return {"trial": trial, **first, "shown": SHOWN}


def _first_run(request: HttpRequest, plan: Plan) -> Context:
    if not _is_named(plan):
        return {}
    try:
        rbac.require(request.user, ("fs:ExportConfig", branch_arn(plan.repository, plan.branch)))
        require_reading(request.user, plan)
        planned = planned_run(plan)
    except LakeMirrorError as error:
        return {"cost_refused": str(error)}
    return {"cost": planned, "cost_as_of": clock.now()}


def _is_named(plan: Plan) -> bool:
    return bool(plan.repository and plan.branch)
