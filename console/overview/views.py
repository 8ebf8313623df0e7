"""The first page: how all mirrors are doing, and what needs somebody."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console import exports_summary, rules_summary
from console.deployment_status import disagreements_seen_by, outages_seen_by, queues_seen_by, workers_seen_by
from console.exports_summary import Summary
from console.overview.recent_events import latest
from console.overview.summary import LOOK_AGAIN, matrix, oldest_unchecked, tell, tiles
from db import clock
from jobs.queue_status import troubles
from mirrors.models import Mirror
from mirrors.status.fleet import fleet_statuses
from mirrors.status.mirror import MirrorStatus
from mirrors.status.root_causes import RootCause, needing_by_themselves
from mirrors.status.sparks import sparks
from mirrors.views.forms import likely_region
from mirrors.views.tabs import may_see
from web.pages import whole_or_part

NEEDING = 8
FEW = 8


@never_cache
@require_safe
@may_see
def overview(request: HttpRequest) -> HttpResponse:
    """Figures, what needs somebody, the worst lag between regions, what happened last."""
    now = clock.now()
    visible = Mirror.objects.visible_to(request.user)
    readings = fleet_statuses(visible, now)
    summary = exports_summary.summary(request.user, now, NEEDING)
    rules = rules_summary.summary(request.user, now, NEEDING)
    causes, differing = outages_seen_by(request.user, readings, now), disagreements_seen_by(request.user)
    urgent = needing_by_themselves(readings, causes)
    context = {
        "section": "overview",
        "now": now,
        "example_region": likely_region,
        "readings": readings,
        "exports": summary,
        "rules": rules,
        "causes": causes,
        "changes": _changes(causes, urgent[:NEEDING], summary, rules),
        "needs": len(causes) + len(urgent) + len(differing) + summary.needing + rules.needing,
        "active": any(reading.active for reading in readings),
        "troubles": differing,
    }
    if readings:
        queues = queues_seen_by(request.user, visible, now)
        others = summary.needing + summary.unsettled + rules.needing + rules.unsettled
        silent, workers = troubles(queues), workers_seen_by(request.user, visible, queues, now)
        context |= {
            "as_of": min(reading.as_of for reading in readings),
            "troubles": [*silent, *differing],
            "needs": context["needs"] + len(silent),
            "summary": tell(readings, causes, silent, differing, others_need=others),
            "tiles": tiles(readings, queues, workers, oldest_unchecked(visible), summary, now),
            "needing": urgent[:NEEDING],
            "more": len(urgent) - NEEDING,
            "look_again": LOOK_AGAIN,
            "few": len(readings) <= FEW,
            "sparks": sparks([reading.mirror for reading in readings], now) if len(readings) <= FEW else {},
            "matrix": matrix(readings),
            "latest": latest(visible, now, request.user),
        }
    return render(request, whole_or_part(request, "overview/overview.html", "overview/_overview.html"), context)


def _changes(
    causes: Sequence[RootCause], urgent: Sequence[MirrorStatus], exported: Summary, rules: rules_summary.Summary
) -> str:
    """What is announced when it changes."""
    outages = [f"{cause.name}, {cause.service}: {cause.word}" for cause in causes]
    mirrors = [f"{reading.mirror.name}: {reading.state.word}" for reading in urgent]
    exports = [f"{need.name}: {need.told.word}" for need in exported.some]
    return ", ".join([*outages, *mirrors, *exports, *(f"{one.rule.name}: {one.told.word}" for one in rules.some)])
