"""The page of notifications: what is wrong now, and what was lately. It works without scripts."""

from __future__ import annotations

import json
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.access.policies import alert_arn
from core.text.phrases import count
from db import clock
from mirrors.views.tabs import may_see
from notifications.answers import ACKNOWLEDGE, alert_acknowledge, alert_snooze
from notifications.channels.services import CREATE, LIST, channel_arn
from notifications.channels.status import channel_readings
from notifications.models import Channel
from notifications.status import alerts_seen_by
from rbac import services as rbac
from web.pages import answered, whole_or_part

SHOWN = 200
EXAMPLE = json.dumps({"name": "on-call", "url": "https://hooks.example.com/...", "signing_secret": "..."})
"""The body of the call that creates a channel."""
CLOSED = 20
SNOOZES = {3600: "for 1 h", 14400: "for 4 h", 86400: "for 24 h", 604800: "for 7 days"}
"""Seconds, and what the button says."""


@never_cache
@require_safe
@may_see
def notifications(request: HttpRequest) -> HttpResponse:
    """Alerts that are open, the worst first, and the last ones that closed."""
    seen = alerts_seen_by(request.user)
    open_now = list(seen.open().order_by("severity", "opened_at", "pk")[: SHOWN + 1])
    context = {
        "section": "notifications",
        "now": clock.now(),
        "open": open_now[:SHOWN],
        "count": f"More than {SHOWN} open alerts" if len(open_now) > SHOWN else count(len(open_now), "open alert"),
        "changes": ", ".join(f"{alert.name}: {alert.word}" for alert in open_now[:SHOWN]),
        "may_answer": {alert.pk for alert in open_now if rbac.allowed(request.user, ACKNOWLEDGE, alert_arn(alert.pk))},
        "snoozes": SNOOZES,
        "closed": seen.filter(closed_at__isnull=False).order_by("-closed_at", "-pk")[:CLOSED],
    }
    if rbac.allowed(request.user, LIST, "*"):
        context |= {
            "sees_channels": True,
            "channels": channel_readings(list(Channel.objects.all())),
            "may_create": rbac.allowed(request.user, CREATE, channel_arn("new")),
            "example": EXAMPLE,
        }
    page, part = "notifications/list.html", "notifications/_alerts.html"
    return render(request, whole_or_part(request, page, part), context)


@require_POST
@may_see
def alert_acknowledged(request: HttpRequest, alert: int) -> HttpResponse:
    """Somebody sees to it."""
    note = request.POST.get("note", "").strip()
    verb = partial(alert_acknowledge, actor=request.user, number=alert, note=note)
    return answered(
        request, verb, "Alert acknowledged: no reminders are sent while it stays open.", reverse("notifications")
    )


@require_POST
@may_see
def alert_snoozed(request: HttpRequest, alert: int) -> HttpResponse:
    """Not to be told again for a while."""
    given = request.POST.get("seconds", "")
    seconds = int(given) if given.isascii() and given.isdigit() and len(given) < 9 else -1
    verb = partial(alert_snooze, actor=request.user, number=alert, seconds=seconds)
    done = "Alert snoozed: a reminder is sent afterwards if it is still open." if seconds else "Snooze ended."
    return answered(request, verb, done, reverse("notifications"))
