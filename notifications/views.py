"""The page of notifications: what is wrong now, and what was lately. It works without scripts."""

from __future__ import annotations

import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from core.text.phrases import count
from db import clock
from mirrors.views.tabs import may_see
from notifications.channel_status import channel_readings
from notifications.models import Channel
from notifications.services import CREATE, LIST, channel_arn
from notifications.status import alerts_seen_by
from rbac import services as rbac
from web.pages import whole_or_part

SHOWN = 200
EXAMPLE = json.dumps({"name": "on-call", "url": "https://hooks.example.com/...", "signing_secret": "..."})
"""The body of the call that creates a channel."""
CLOSED = 20


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
        "count": f"More than {SHOWN} alerts" if len(open_now) > SHOWN else count(len(open_now), "alert"),
        "changes": ", ".join(f"{alert.name}: {alert.word}" for alert in open_now[:SHOWN]),
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
