"""Lag, backlog and throughput of a mirror over time, on its page."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from core.errors import Invalid
from db import clock
from deployment import config
from mirrors.status.marks import happenings
from mirrors.status.mirror import mirror_statuses
from mirrors.status.series import DEFAULT, PERIODS, check_branch, measured, with_branch
from mirrors.transitions.rpo_breaches import target_of
from mirrors.views.charts import axis_of, charts, unmeasured
from mirrors.views.tabs import find_visible, may_see, show_tab
from web.pages import with_query

NAMED = 300
"""So many branches are proposed while one types."""


@never_cache
@require_safe
@may_see
def metrics(request: HttpRequest, name: str) -> HttpResponse:
    """Pictures of a period, and the same as a table."""
    mirror, now = find_visible(request, name), clock.now()
    period, reading = _period(request), mirror_statuses([mirror], now)[0]
    branch = request.GET.get("branch", "") or mirror.source.default_branch
    chosen = ""
    if branch != mirror.source.default_branch:
        check_branch(mirror, branch)
        chosen = f"&branch={quote(branch)}"
    measures = with_branch(measured(mirror, PERIODS[period], now), mirror, branch, now)
    known = [step for step in reversed(measures.steps) if step.known]
    api = reverse("api-metrics", args=[mirror.source.name, mirror.name])
    context = {
        "branch": branch,
        "period": period,
        "branches": [one.name for one in reading.branches][:NAMED],
        "periods": [(key, with_query(request, period=key), key == period) for key in PERIODS],
        "plots": charts(measures, target_of(mirror), branch) if known else [],
        "short": PERIODS[period].back <= timedelta(days=1),
        "steps": known,
        "measures": measures,
        "axis": axis_of(measures),
        "happenings": happenings(mirror, measures.steps[0].at),
        "length": timedelta(minutes=measures.period.step),
        "since": known[-1].at if known and known[-1].at > measures.steps[0].at else None,
        "unmeasured": unmeasured(measures),
        "target": target_of(mirror).total_seconds(),
        "interval": config.current().validator.run_interval,
        "api": f"{api}?period={period}{chosen}",
    }
    return show_tab(request, reading, "mirror_metrics", context)


def _period(request: HttpRequest) -> str:
    given = request.GET.get("period", "") or DEFAULT
    if given not in PERIODS:
        raise Invalid(f"'{given[:40]}' is not one of {', '.join(PERIODS)}", field="period")
    return given
