"""The pages of maintenance windows. They work without scripts."""

from __future__ import annotations

from datetime import UTC, timedelta
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from core.access.policies import maintenance_arn
from core.errors import LakeMirrorError
from core.notifications.maintenance import LONGEST_REASON, Maintenance
from db import clock
from mirrors.views.tabs import may_see
from notifications.channels.forms import patterns
from notifications.maintenance import MANAGE, maintenance_create, maintenance_end
from rbac import services as rbac
from web.errors import status_of
from web.forms import ServiceForm, lines
from web.pages import answered

FORMAT = "%Y-%m-%dT%H:%M"


def _moment(label: str, help_text: str) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format=FORMAT)
    return forms.DateTimeField(label=label, input_formats=[FORMAT], widget=widget, help_text=help_text)


class MaintenanceForm(ServiceForm):
    """A window, in the words of the API."""

    reason = forms.CharField(label="Reason", max_length=LONGEST_REASON, help_text="Shown with the alerts.")
    starts_at = _moment("From", "UTC.")
    ends_at = _moment("Until", "UTC.")
    names = patterns("Mirrors and exports", "One pattern per line: lake-*, or orders/main for an export. Empty: all.")
    regions = patterns("Regions", "One pattern per line, like eu-*. Empty: all.")

    @classmethod
    def of_now(cls) -> MaintenanceForm:
        """From now on, for an hour."""
        now = clock.now().astimezone(UTC)
        return cls(initial={"starts_at": now, "ends_at": now + timedelta(hours=1)})

    @property
    def wish(self) -> Maintenance:
        """What the service takes. Of a form that is valid."""
        given = self.cleaned_data
        starts, ends = given["starts_at"].replace(tzinfo=UTC), given["ends_at"].replace(tzinfo=UTC)
        return Maintenance(starts, ends, given["reason"], tuple(lines(given["names"])), tuple(lines(given["regions"])))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def maintenance_new(request: HttpRequest) -> HttpResponse:
    """The form of a new one."""
    if request.method != "POST":
        return _show(request, MaintenanceForm.of_now())
    rbac.require(request.user, (MANAGE, maintenance_arn("new")))
    form = MaintenanceForm(request.POST)
    if not form.is_valid():
        return _show(request, form, 400)
    try:
        maintenance_create(actor=request.user, wish=form.wish)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show(request, form, int(status_of(error) or 500))
    messages.success(request, "Maintenance window created.")
    return redirect("notifications")


@require_POST
@may_see
def maintenance_ended(request: HttpRequest, window: int) -> HttpResponse:
    """End one now."""
    verb = partial(maintenance_end, actor=request.user, number=window)
    return answered(request, verb, "Maintenance window ended.", reverse("notifications"))


def _show(request: HttpRequest, form: MaintenanceForm, status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {"section": "notifications", "form": form}
    return render(request, "notifications/maintenance_form.html", context, status=status)
