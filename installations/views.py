"""The pages of installations: the list, one of them, its form. They work without scripts."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.errors import Conflict, Invalid, LakeMirrorError, NotFound, Stale
from db import clock
from installations.connection_test import installation_test, passed
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
    rbac.require(request.user, (CREATE, installation_arn(str(form["region"].value() or ""))))
    if not form.is_valid():
        return _show_form(request, form, 400)
    try:
        row = installation_create(actor=request.user, wish=form.wish, secrets=form.secrets)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show_form(request, form, int(status_of(error) or 500))
    messages.success(request, f"{row.region} is added, and known everywhere within seconds. Test it now.")
    return redirect("installation", row.region)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def installation_edit(request: HttpRequest, region: str) -> HttpResponse:
    """Change one of the database."""
    reading = find(region)
    if reading.in_file:
        raise Conflict(
            f"the installation '{region}' is in the configuration file", hint="Edit it there, and restart LakeMirror"
        )
    if request.method != "POST":
        return _show_form(request, InstallationForm.of(reading.wish, reading.etag), reading=reading)
    rbac.require(request.user, (UPDATE, installation_arn(region)))
    form = InstallationForm(request.POST, initial={"region": region}).pinned()
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
    messages.success(request, f"{reading.region} is saved, and known everywhere within seconds.")
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
        messages.success(request, f"Tested: {region} works, as far as could be asked.")
    else:
        messages.error(request, f"Tested: {region} does not work as it should. What is wrong stands below.")
    return redirect("installation", region)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def installation_deleted(request: HttpRequest, region: str) -> HttpResponse:
    """Say what uses it, or forget it."""
    reading = find(region)
    if reading.in_file and not reading.doubled:
        raise Conflict(
            f"the installation '{region}' is in the configuration file", hint="Delete it there, and restart LakeMirror"
        )
    if request.method != "POST":
        return render(request, "installations/delete.html", SECTION | {"reading": reading})
    reason = request.POST.get("reason", "")[:1000]
    installation_delete(actor=request.user, region=region, reason=reason)
    messages.success(request, f"{region} is deleted. Nothing at its lakeFS or its store was changed.")
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
