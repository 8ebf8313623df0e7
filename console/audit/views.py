"""The page of who did what, over all mirrors and all access."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from audit import refusals, search
from audit.chain_status import chain_status
from audit.changes import changes_of
from console.audit.api import MAY_SEE
from core.errors import Invalid
from db import clock
from rbac.signin.views import permission_required
from web.pages import ROWS, with_query

KINDS = {
    "no-credentials": "No credentials",
    "wrong-key": "Wrong access key",
    "wrong-password": "Wrong name or password",
    "too-many-attempts": "Too many attempts",
    "wrong-webhook-secret": "Wrong webhook secret",
}


@never_cache
@require_safe
@permission_required(*MAY_SEE)
def audit_list(request: HttpRequest) -> HttpResponse:
    """Events, the last first, by the filters of the address; how the chain stands; what strangers were refused."""
    given = {name: request.GET.get(name, "").strip() for name in search.FILTERS}
    matches, wrong = search.Look([], ""), ""
    try:
        matches = search.look(search.asked_for(given), after=request.GET.get("after", ""), amount=ROWS)
    except Invalid as error:
        wrong = f"{error.field}: {error}"
    now = clock.now()
    strangers = [(KINDS.get(row["action"], row["action"]), row) for row in refusals.of_strangers(now)]
    context = {
        "section": "audit",
        "filters": given,
        "error": wrong,
        "periods": [(word, with_query(request, **days), _is_set(given, days)) for word, days in _periods(now)],
        "chips": [(name, value, with_query(request, **{name: None})) for name, value in given.items() if value],
        "events": [(row, changes_of(row)) for row in matches.rows],
        "more": with_query(request, after=matches.next) if matches.next else "",
        "first_page": with_query(request) if request.GET.get("after") else "",
        "csv": reverse("api-audit") + with_query(request, format="csv"),
        "call": reverse("api-audit") + with_query(request),
        "chain": chain_status(),
        "strangers": strangers,
        "now": now,
    }
    return render(request, "audit/audit.html", context, status=400 if wrong else 200)


def _periods(now: datetime) -> list[tuple[str, dict[str, str]]]:
    """What people ask for the most, as the filters `from` and `to`: days in UTC, the last one included."""
    today = now.astimezone(UTC).date()
    ends = (("Today", 0, 0), ("Yesterday", 1, 1), ("Last 7 days", 6, 0))
    return [
        (word, {"from": str(today - timedelta(days=first)), "to": str(today - timedelta(days=last))})
        for word, first, last in ends
    ]


def _is_set(given: Mapping[str, str], days: Mapping[str, str]) -> bool:
    return all(given[name] == day for name, day in days.items())
