"""The page on which a mirror is made, and what it says while one types: checks, matching branches, the API call."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote as url_quote

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core.errors import LakeMirrorError
from core.mirroring.branch_selection import ALL
from db import clock
from deployment import config
from mirrors.preflight.branch_matches import branch_matches
from mirrors.preflight.checks import preflight
from mirrors.preflight.cost import NOT_COUNTED, preview_of_plan
from mirrors.preflight.questions import Plan
from mirrors.preflight.summary import told_of
from mirrors.services import mirrors
from mirrors.views.forms import MirrorForm
from mirrors.views.tabs import SECTION, may_see
from rbac.signin.form_recovery import GIVEN_BACK, keeps_typed, take
from web.api_snippets import command, curl
from web.errors import status_of

CHECKS, MATCHES, COST = "preflight", "matches", "cost"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
@keeps_typed
def mirror_new(request: HttpRequest) -> HttpResponse:
    """The form of a new mirror. What was typed stays there, whatever becomes of it."""
    if request.method != "POST":
        return _begin(request)
    if request.htmx.target in (CHECKS, MATCHES, COST):
        return _show_part(request, MirrorForm.typed(request.POST), request.htmx.target)
    if "check" in request.POST:
        form = MirrorForm.typed(request.POST)
        parts = _matches(request, form.plan) | _checks(request, form.plan) | _cost(request, form.plan)
        return _show(request, form, **parts)
    return _make(request, MirrorForm(request.POST))


def _begin(request: HttpRequest) -> HttpResponse:
    """The empty form, or what somebody had typed into it when their session ended, which is checked anew."""
    given = take(request)
    if given is None:
        return _show(request, MirrorForm.fresh())
    messages.info(request, GIVEN_BACK)
    return _show(request, MirrorForm.typed(given), check_now=True)


def _make(request: HttpRequest, form: MirrorForm) -> HttpResponse:
    if not form.is_valid():
        return _show(request, form, status=400)
    try:
        mirror = mirrors.mirror_create(actor=request.user, **form.creation)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show(request, form, status=int(status_of(error) or 500))
    messages.success(request, f"{mirror.name} is being made. Its branches appear as their commits arrive.")
    return redirect("mirror", mirror.name)


def _show(request: HttpRequest, form: MirrorForm, status: int = 200, **parts: Any) -> HttpResponse:
    context = SECTION | {"form": form, "now": clock.now(), **_typed(request, form.plan), **parts}
    return render(request, "mirrors/new.html", context, status=status)


def _show_part(request: HttpRequest, form: MirrorForm, part: str) -> HttpResponse:
    """What is wrong with a plan is an answer, too: a status of its own would keep it from being shown."""
    if part == MATCHES:
        return render(request, "mirrors/_matches.html", _matches(request, form.plan))
    if part == COST:
        return render(request, "mirrors/_cost.html", _cost(request, form.plan))
    context = _checks(request, form.plan) | _typed(request, form.plan)
    return render(request, "mirrors/_preflight.html", context)


# --- what is found ----------------------------------------------------------------------------------------------------


def _checks(request: HttpRequest, plan: Plan) -> dict[str, Any]:
    if not plan.source_repository:
        return {}
    try:
        result = preflight(actor=request.user, plan=plan)
    except LakeMirrorError as error:
        return {"preflight_refused": str(error)}
    return {"summary": told_of(result)}


def _matches(request: HttpRequest, plan: Plan) -> dict[str, Any]:
    if not plan.source_repository:
        return {}
    try:
        return {"matches": branch_matches(actor=request.user, plan=plan)}
    except LakeMirrorError as error:
        return {"matches_refused": str(error)}


def _cost(request: HttpRequest, plan: Plan) -> dict[str, Any]:
    if not plan.source_repository:
        return {}
    try:
        preview = preview_of_plan(actor=request.user, plan=plan)
    except LakeMirrorError as error:
        return {"cost_refused": str(error)}
    return {"cost": preview, "not_counted": NOT_COUNTED, "plan": plan, "cost_as_of": clock.now()}


# --- the same as an API call and as a command -------------------------------------------------------------------------


def _typed(request: HttpRequest, plan: Plan) -> dict[str, str]:
    return {"api_call": api_call(request, plan), "command": creation_command(request, plan)}


def api_call(request: HttpRequest, plan: Plan) -> str:
    """The curl that makes what was typed."""
    path = reverse("api-mirrors", args=["REPOSITORY"])
    if plan.source_repository:
        path = path.replace("REPOSITORY", url_quote(plan.source_repository, safe=""))
    return curl("POST", request.build_absolute_uri(path), json.dumps(_body(plan), ensure_ascii=False))


def creation_command(request: HttpRequest, plan: Plan) -> str:
    """The command line that does the same."""
    include = () if plan.include == ALL else plan.include
    globs = [
        word for name, some in (("--include", include), ("--exclude", plan.exclude)) for g in some for word in (name, g)
    ]
    words = [plan.name or "NAME", "--repository", plan.source_repository or "REPOSITORY", "--region", plan.region]
    words += ["--storage-namespace", plan.storage_namespace or "S3-URI"]
    words += ["--source-region", plan.source_region if plan.source_region != config.current().region else "", *globs]
    return command(request.build_absolute_uri("/").rstrip("/"), "create", *words, *(["--tags"] if plan.tags else []))


def _body(plan: Plan) -> dict[str, Any]:
    body: dict[str, Any] = {"name": plan.name, "region": plan.region, "storage_namespace": plan.storage_namespace}
    if plan.source_region != config.current().region:
        body["source_region"] = plan.source_region
    if plan.include != ALL or plan.exclude:
        body["branches"] = {"include": list(plan.include), "exclude": list(plan.exclude)}
    return body | ({"tags": True} if plan.tags else {})
