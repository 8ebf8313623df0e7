"""The pages of installations: the list, one of them, its form. They work without scripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.errors import Invalid, LakeMirrorError, NotFound, Stale
from core.installations.preflight import Check
from db import clock
from installations.check_groups import grouped
from installations.connection_test import candidate_test, change_test, installation_test, passed
from installations.forms import InstallationForm
from installations.services import (
    CREATE,
    DELETE,
    LIST,
    TEST,
    UPDATE,
    installation_arn,
    installation_create,
    installation_delete,
    installation_update,
    of_file,
)
from installations.status import InstallationReading, installation_reading, installation_readings
from rbac import services as rbac
from rbac.signin.views import permission_required
from web.errors import status_of
from web.etags import Seen

SECTION = {"section": "installations"}
EXAMPLE = json.dumps(
    {
        "region": "eu-central-1",
        "lakefs_endpoint": "https://lakefs.example.com",
        "lakefs_access_key_id": "...",
        "lakefs_secret_access_key": "...",
        "store_access": "chain",
    }
)
"""The body of the call that adds one."""
may_see = permission_required(LIST, "*")


@never_cache
@require_safe
@may_see
def installation_list(request: HttpRequest) -> HttpResponse:
    """All installations, the file's first."""
    context = SECTION | {
        "readings": installation_readings(),
        "now": clock.now(),
        "may_create": rbac.allowed(request.user, CREATE, installation_arn("new")),
        "example": EXAMPLE,
    }
    return render(request, "installations/list.html", context)


@never_cache
@require_safe
@may_see
def installation_detail(request: HttpRequest, region: str) -> HttpResponse:
    """One installation: where it is, what uses it, what the last test found."""
    return _show(request, find(region))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def installation_new(request: HttpRequest) -> HttpResponse:
    """The form of a new one."""
    if request.method != "POST":
        return _show_form(request, InstallationForm.fresh())
    form = InstallationForm(request.POST)
    if "test" in request.POST:
        return _try(request, form, partial(candidate_test, actor=request.user))
    rbac.require(request.user, (CREATE, installation_arn(str(form["region"].value() or ""))))
    if not form.is_valid():
        return _show_form(request, form, 400)
    try:
        row = installation_create(actor=request.user, wish=form.wish, secrets=form.secrets)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show_form(request, form, int(status_of(error) or 500))
    messages.success(request, f"{row.region} added. It can be used within seconds.")
    return redirect("installation", row.region)


def _try(request: HttpRequest, form: InstallationForm, test: Callable[..., list[Check]], **shown: Any) -> HttpResponse:
    """What a test of the typed installation finds. What keeps it from being tested is an answer, too."""
    found: dict[str, Any] = {}
    try:
        if form.is_valid():
            checks = test(wish=form.wish, secrets=form.secrets, namespace=form.place)
            found["tested_groups"] = grouped(checks)
        else:
            wrong = "; ".join(f"{form.fields[name].label}: {errors[0]}" for name, errors in form.errors.items())
            found["test_refused"] = f"Fix the following before the test: {wrong}"
    except LakeMirrorError as error:
        found["test_refused"] = str(error)
    if request.htmx:
        return render(request, "installations/_tested.html", found | shown)
    return _show_form(request, form, **found, **shown)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def installation_edit(request: HttpRequest, region: str) -> HttpResponse:
    """Change one of the database."""
    reading = find(region)
    if reading.in_file:
        raise of_file(region, "Edit")
    if request.method != "POST":
        return _show_form(request, InstallationForm.of(reading.wish, reading.etag), reading=reading)
    rbac.require(request.user, (UPDATE, installation_arn(region)))
    form = InstallationForm(request.POST, initial={"region": region}).pinned()
    if "test" in request.POST:
        return _try(request, form, partial(change_test, actor=request.user, region=region), reading=reading)
    if not form.is_valid():
        return _show_form(request, form, 400, reading=reading)
    return _save(request, form, reading)


def _save(request: HttpRequest, form: InstallationForm, reading: InstallationReading) -> HttpResponse:
    seen = Seen(frozenset({form.cleaned_data["seen"]}))
    try:
        installation_update(actor=request.user, region=reading.region, wish=form.wish, secrets=form.secrets, seen=seen)
    except Stale:
        fresh, changed = form.over(reading.wish, reading.etag)
        return _show_form(request, fresh, 412, reading=reading, changed=changed, stale=True)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show_form(request, form, int(status_of(error) or 500), reading=reading)
    messages.success(request, f"{reading.region} saved. The change applies within seconds.")
    return redirect("installation", reading.region)


@require_POST
@may_see
def installation_tested(request: HttpRequest, region: str) -> HttpResponse:
    """Ask it everything now."""
    reading, namespace = find(region), request.POST.get("namespace", "").strip()
    try:
        test = installation_test(actor=request.user, region=region, namespace=namespace)
    except Invalid as error:
        return _show(request, reading, status=400, refused=str(error), namespace=namespace)
    if passed(test):
        messages.success(request, f"Tested: {region} works, as far as it could be checked.")
    else:
        messages.error(request, f"Tested: {region} has problems, see below.")
    return redirect("installation", region)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def installation_deleted(request: HttpRequest, region: str) -> HttpResponse:
    """Say what uses it, or forget it."""
    reading = find(region)
    if reading.in_file and not reading.doubled:
        raise of_file(region, "Delete")
    if request.method != "POST":
        return render(request, "installations/delete.html", SECTION | {"reading": reading})
    reason = request.POST.get("reason", "")[:1000]
    installation_delete(actor=request.user, region=region, reason=reason)
    where = "its lakeFS or its store" if reading.wish.has_lakefs else "its store"
    messages.success(request, f"{region} deleted. Nothing at {where} was changed.")
    return redirect("installations")


def find(region: str) -> InstallationReading:
    """What is known of it. Raises Http404."""
    try:
        return installation_reading(region)
    except NotFound as error:
        raise Http404(str(error)) from error


def _show(request: HttpRequest, reading: InstallationReading, status: int = 200, **more: Any) -> HttpResponse:
    arn = installation_arn(reading.region)
    context = {
        "reading": reading,
        "now": clock.now(),
        "may_update": rbac.allowed(request.user, UPDATE, arn) and not reading.in_file,
        "may_delete": rbac.allowed(request.user, DELETE, arn) and (not reading.in_file or reading.doubled),
        "may_test": rbac.allowed(request.user, TEST, arn),
    }
    return render(request, "installations/detail.html", {**SECTION, **context, **more}, status=status)


def _show_form(request: HttpRequest, form: InstallationForm, status: int = 200, **more: Any) -> HttpResponse:
    return render(request, "installations/form.html", {**SECTION, "form": form, **more}, status=status)
