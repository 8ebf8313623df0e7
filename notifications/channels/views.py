"""The pages of channels: one of them, its form, what was sent. They work without scripts."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.errors import LakeMirrorError, NotFound, Stale
from db import clock
from notifications.channels import services
from notifications.channels.forms import ChannelForm
from notifications.channels.services import CREATE, DELETE, LIST, TEST, UPDATE, channel_arn
from notifications.channels.status import channel_readings
from notifications.models import Channel
from rbac import services as rbac
from rbac.signin.views import permission_required
from web.errors import status_of
from web.etags import Seen
from web.pages import page_of_rows

SECTION = {"section": "notifications"}
may_see = permission_required(LIST, "*")


@never_cache
@require_safe
@may_see
def channel_detail(request: HttpRequest, channel: str) -> HttpResponse:
    """One channel: where it leads, and what was sent by it."""
    row = find(channel)
    [reading] = channel_readings([row])
    deliveries = row.deliveries.select_related("event")
    context = {
        "reading": reading,
        "channel": row,
        "deliveries": page_of_rows(request, deliveries, "pk", newest=True),
        "now": clock.now(),
        "may_change": rbac.allowed(request.user, UPDATE, channel_arn(row.name)),
        "may_delete": rbac.allowed(request.user, DELETE, channel_arn(row.name)),
        "may_test": rbac.allowed(request.user, TEST, channel_arn(row.name)),
    }
    return render(request, "notifications/channel.html", SECTION | context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def channel_new(request: HttpRequest) -> HttpResponse:
    """The form of a new one."""
    if request.method != "POST":
        return _show_form(request, ChannelForm())
    form = ChannelForm(request.POST)
    rbac.require(request.user, (CREATE, channel_arn(str(form["name"].value() or ""))))
    if not form.is_valid():
        return _show_form(request, form, 400)
    try:
        row = services.channel_create(actor=request.user, wish=form.wish, secrets=form.secrets)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show_form(request, form, int(status_of(error) or 500))
    messages.success(request, f"Channel {row.name} created. Send a test message to check it.")
    return redirect("channel", row.name)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def channel_edit(request: HttpRequest, channel: str) -> HttpResponse:
    """Change one."""
    row = find(channel)
    if request.method != "POST":
        return _show_form(request, ChannelForm.of(row), channel=row)
    rbac.require(request.user, (UPDATE, channel_arn(row.name)))
    form = ChannelForm(request.POST, initial={"name": row.name}).pinned(row.kind)
    if not form.is_valid():
        return _show_form(request, form, 400, channel=row)
    seen = Seen(frozenset({form.cleaned_data["seen"]}))
    try:
        services.channel_update(actor=request.user, name=row.name, wish=form.wish, secrets=form.secrets, seen=seen)
    except Stale:
        return _show_form(request, ChannelForm.of(find(channel)), 412, channel=row, stale=True)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show_form(request, form, int(status_of(error) or 500), channel=row)
    messages.success(request, f"Channel {row.name} saved.")
    return redirect("channel", row.name)


@require_POST
@may_see
def channel_tested(request: HttpRequest, channel: str) -> HttpResponse:
    """Send a message now."""
    row = find(channel)
    outcome = services.channel_test(actor=request.user, name=row.name)
    if outcome.taken:
        messages.success(request, f"Test message accepted in {outcome.seconds:.1f} s ({outcome.answer}).")
    else:
        messages.error(request, f"Test message not accepted: {outcome.answer}")
    return redirect("channel", row.name)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def channel_deleted(request: HttpRequest, channel: str) -> HttpResponse:
    """Ask, or forget it."""
    row = find(channel)
    if request.method != "POST":
        [reading] = channel_readings([row])
        return render(request, "notifications/channel_delete.html", SECTION | {"reading": reading, "channel": row})
    services.channel_delete(actor=request.user, name=row.name, reason=request.POST.get("reason", "")[:1000])
    messages.success(request, f"Channel {row.name} deleted.")
    return redirect("notifications")


def find(name: str) -> Channel:
    """The channel of that name. Raises Http404."""
    try:
        return services.find(name)
    except NotFound as error:
        raise Http404(str(error)) from error


def _show_form(request: HttpRequest, form: ChannelForm, status: int = 200, **more: Any) -> HttpResponse:
    return render(request, "notifications/channel_form.html", {**SECTION, "form": form, **more}, status=status)
