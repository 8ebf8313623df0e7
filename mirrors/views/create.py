"""The page on which a mirror is made, and what it says while one types: checks, matching branches, the API call."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote as url_quote

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core.bringing import ObjectReplication
from core.errors import LakeMirrorError
from core.mirroring.branch_selection import ALL
from db import clock
from deployment import config
from mirrors.preflight.branch_matches import branch_matches
from mirrors.preflight.checks import preflight
from mirrors.preflight.cost import NOT_COUNTED, preview_of_plan
from mirrors.preflight.pick_lists import pick_lists
from mirrors.preflight.questions import Plan
from mirrors.preflight.typed_so_far import of_what_is_typed
from mirrors.preflight.unreplicated import manifest, route_of_plan
from mirrors.services import mirrors
from mirrors.services.rights import require_some_creation
from mirrors.views.forms import MirrorForm
from mirrors.views.tabs import SECTION, may_see
from rbac.signin.form_recovery import GIVEN_BACK, keeps_typed, take
from web.api_snippets import command, curl
from web.csv_export import lines_answer
from web.errors import status_of


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
@keeps_typed
def mirror_new(request: HttpRequest) -> HttpResponseBase:
    """The form of a new mirror. What was typed stays there, whatever becomes of it. Raises Denied for who can create
    none."""
    require_some_creation(request.user)
    if request.method != "POST":
        return _begin(request)
    if "manifest" in request.POST:
        return _manifest(request, MirrorForm.typed(request.POST))
    if request.htmx.target in PARTS:
        plan, part = MirrorForm.typed(request.POST).plan, request.htmx.target
        return _show_part(request, plan, part, writing="check" in request.POST)
    if "check" in request.POST:
        form = MirrorForm.typed(request.POST)
        found: dict[str, Any] = {}
        for part in PARTS:
            found |= _found(request, form.plan, part, writing=True)
        return _show(request, form, **found)
    return _make(request, MirrorForm(request.POST))


def _manifest(request: HttpRequest, form: MirrorForm) -> HttpResponseBase:
    """Of what was typed: the file, or the form again with what keeps it from being made."""
    plan = form.plan
    try:
        route = route_of_plan(
            actor=request.user,
            repository=plan.source_repository,
            source_region=plan.source_region,
            name=plan.name,
            region=plan.region,
            namespace=plan.namespace,
        )
        return lines_answer(f"{plan.name}-manifest", manifest(route, versions=True))
    except LakeMirrorError as error:
        messages.error(request, str(error))
        return _show(request, form, status=int(status_of(error) or 500), check_now=True)


def _begin(request: HttpRequest) -> HttpResponse:
    """The empty form, or what somebody had typed into it when their session ended, which is checked anew."""
    given = take(request)
    if given is None:
        return _show(request, MirrorForm.fresh())
    messages.info(request, GIVEN_BACK)
    return _show(request, MirrorForm.typed(given), check_now=True)


def _make(request: HttpRequest, form: MirrorForm) -> HttpResponse:
    if not form.is_valid():
        return _show(request, form, status=400, check_now=True)
    try:
        mirrors.check_creation(actor=request.user, **form.creation)
        summary = preflight(actor=request.user, plan=form.plan, writing=True)
        if summary.failed and "anyway" not in request.POST:
            return _show(request, form, status=409, summary=summary, failing=summary.failed, check_now=True)
        mirror = mirrors.mirror_create(actor=request.user, failed_checks=summary.failed, **form.creation)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show(request, form, status=int(status_of(error) or 500), check_now=True)
    messages.success(request, f"Mirror {mirror.name} created. Its branches appear as their commits arrive.")
    return redirect("mirror", mirror.name)


def _show(request: HttpRequest, form: MirrorForm, status: int = 200, **parts: Any) -> HttpResponse:
    context = SECTION | {"form": form, "now": clock.now(), **_typed(request, form.plan), **parts}
    return render(request, "mirrors/new.html", context, status=status)


def _show_part(request: HttpRequest, plan: Plan, part: str, *, writing: bool) -> HttpResponse:
    """What is wrong with a plan is an answer, too: a status of its own would keep it from being shown."""
    found = _found(request, plan, part, writing=writing)
    return render(request, f"mirrors/_{part}.html", found | _typed(request, plan))


# --- what is found ----------------------------------------------------------------------------------------------------


def _found(request: HttpRequest, plan: Plan, part: str, *, writing: bool = False) -> dict[str, Any]:
    """What a part of the page tells of a plan, or why it was refused; nothing until the repository is named. `writing`:
    what has to be tried at a store may be."""
    if not plan.source_repository and part != "picks":
        return {}
    try:
        if part == "preflight":
            found = preflight(actor=request.user, plan=plan, writing=writing)
            return {"summary": of_what_is_typed(found, plan)}
        return OTHER_PARTS[part](request.user, plan)
    except LakeMirrorError as error:
        return {f"{part}_refused": str(error)}


def _matches(actor: Any, plan: Plan) -> dict[str, Any]:
    return {"matches": branch_matches(actor=actor, plan=plan)}


def _picks(actor: Any, plan: Plan) -> dict[str, Any]:
    return {"picks": pick_lists(actor=actor, plan=plan)}


def _cost(actor: Any, plan: Plan) -> dict[str, Any]:
    preview = preview_of_plan(actor=actor, plan=plan)
    return {"cost": preview, "not_counted": NOT_COUNTED, "plan": plan, "cost_as_of": clock.now()}


OTHER_PARTS = {"matches": _matches, "cost": _cost, "picks": _picks}
PARTS = ("preflight", *OTHER_PARTS)
"""By the id on the page, which its template is named for."""


# --- the same as an API call and as a command -------------------------------------------------------------------------


def _typed(request: HttpRequest, plan: Plan) -> dict[str, str]:
    matches = {"matches_url": reverse("mirror_new"), "matches_form": "new-mirror"}
    return matches | {"api_call": api_call(request, plan), "command": creation_command(request, plan)}


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
    words += ["--validation-depth", plan.depth] if plan.depth else []
    words += [option for option, given in (("--tags", plan.tags), ("--adopt", plan.adopt)) if given]
    words += ["--object-replication", "managed"] if plan.managed else []
    return command(request.build_absolute_uri("/").rstrip("/"), "create", *words)


def _body(plan: Plan) -> dict[str, Any]:
    body: dict[str, Any] = {"name": plan.name, "region": plan.region, "storage_namespace": plan.storage_namespace}
    if plan.source_region != config.current().region:
        body["source_region"] = plan.source_region
    if plan.include != ALL or plan.exclude:
        body["branches"] = {"include": list(plan.include), "exclude": list(plan.exclude)}
    lag = int(plan.rpo_seconds) if plan.rpo_seconds.isdecimal() else None
    more = {"tags": plan.tags, "adopt": plan.adopt, "validation_depth": plan.depth, "rpo_seconds": lag}
    body |= {"object_replication": ObjectReplication.MANAGED.value} if plan.managed else {}
    return body | {name: value for name, value in more.items() if value}
