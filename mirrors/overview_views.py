"""The first page: how all mirrors are doing, and what needs somebody."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from mirrors import clock
from mirrors.fleet import fleet_readings
from mirrors.forms import likely_region
from mirrors.latest import latest
from mirrors.listing import needing
from mirrors.models import Mirror
from mirrors.overview import LOOK_AGAIN, matrix, oldest_unchecked, tell, tiles
from mirrors.page_parts import may_see
from mirrors.queue_readings import queue_readings, troubles

NEEDING = 8
FEW = 8


@never_cache
@require_safe
@may_see
def overview(request: HttpRequest) -> HttpResponse:
    """Figures, what needs somebody, the worst lag between regions, what happened last."""
    now = clock.now()
    visible = Mirror.objects.visible_to(request.user)
    readings = fleet_readings(visible, now)
    context = {"section": "overview", "now": now, "example_region": likely_region, "readings": readings}
    if readings:
        queues = queue_readings(now)
        silent = troubles(queues)
        urgent = needing(readings)
        context |= {
            "as_of": min(reading.as_of for reading in readings),
            "troubles": silent,
            "told": tell(readings, silent),
            "tiles": tiles(readings, queues, oldest_unchecked(visible), now),
            "needing": urgent[:NEEDING],
            "more": len(urgent) - NEEDING,
            "look_again": LOOK_AGAIN,
            "few": len(readings) <= FEW,
            "matrix": matrix(readings),
            "latest": latest(visible, now),
            "active": any(reading.active for reading in readings),
            "changes": ", ".join(f"{reading.mirror.name}: {reading.state.word}" for reading in urgent[:NEEDING]),
        }
    part = "overview/_overview.html" if request.htmx.target == "live" else "overview/overview.html"
    return render(request, part, context)
