"""Pages of passes: those of a rule, with what begins one and what it would cost; and one of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.errors import Invalid, LakeMirrorError
from core.replicating.passes import What
from db import clock
from replication.models import Pass
from replication.preflight.cost import cost_of
from replication.queries.pass_reports import first_rows
from replication.services import passes
from replication.services.passes import Asked, find_pass, links_of
from replication.status.passes import ACTION_WORDS, pass_reading
from replication.views.rule import SECTION, find_visible, may
from web.pages import answered, page_of_rows, whole_or_part
from web.paging import number_of

OLDER = (
    (0, "Any age"),
    (86_400, "A day ago or longer"),
    (7 * 86_400, "7 days ago or longer"),
    (30 * 86_400, "30 days"),
)


@never_cache
@require_safe
def rule_passes(request: HttpRequest, rule: str) -> HttpResponse:
    """Resyncs and dry runs of a rule; with `?cost=1` what bringing what lacks would cost."""
    found, now = find_visible(request, rule), clock.now()
    rows = Pass.objects.filter(rule=found.pk).select_related("rule", "link")
    page = page_of_rows(request, rows, "pk", newest=True)
    readings = [pass_reading(made, now) for made in page.rows]
    context: dict[str, Any] = SECTION | {
        "rule": found,
        "links": list(found.links.order_by("number")),
        "readings": readings,
        "moving": any(reading.running for reading in readings),
        "page": page,
        "older": OLDER,
        "now": now,
        **may(request, found),
    }
    if "cost" in request.GET:
        try:
            context["cost"] = cost_of(found)
        except LakeMirrorError as error:
            context["no_cost"] = str(error)
    return render(request, whole_or_part(request, "replication/passes.html", "replication/_passes.html"), context)


@never_cache
@require_safe
def pass_detail(request: HttpRequest, number: int) -> HttpResponse:
    """One pass: how far it is, or how it ended; the first rows of its report."""
    made, now = find_pass(request.user, number), clock.now()
    report = reverse("api-pass-report", args=[made.pk])
    context = SECTION | {
        "reading": pass_reading(made, now),
        "made": made,
        "targets": links_of(made),
        "rows": [(row, ACTION_WORDS.get(row.action, row.action)) for row in first_rows(made)],
        "report": report,
        "now": now,
        "may_operate": _may_cancel(request, made),
    }
    return render(request, whole_or_part(request, "replication/pass.html", "replication/_pass.html"), context)


def _may_cancel(request: HttpRequest, made: Pass) -> bool:
    return True if made.rule is None else may(request, made.rule)["may_operate"]


@require_POST
def rule_pass_begin(request: HttpRequest, rule: str) -> HttpResponse:
    """Begin a resync of a link, or a dry run of it or of all."""
    found = find_visible(request, rule)
    link = number_of(request.POST["link"], "link") if request.POST.get("link") else None
    asked = _asked(request)
    if request.POST.get("kind") == "resync":
        if link is None:
            raise Invalid("choose a target", field="link")
        begin = partial(passes.pass_resync, actor=request.user, name=found.name, number=link, asked=asked)
    else:
        begin = partial(passes.pass_dry_run, actor=request.user, name=found.name, number=link, asked=asked)
    return answered(request, begin, _begun, reverse("rule_passes", args=[found.name]))


def _begun(made: Pass) -> str:
    return f"Started: {'dry run' if made.is_dry else 'resync'} {made.pk}."


@require_POST
def pass_cancel(request: HttpRequest, number: int) -> HttpResponse:
    """End it."""
    made = find_pass(request.user, number)
    cancel = partial(passes.pass_cancel, actor=request.user, number=made.pk)
    return answered(request, cancel, "Canceled.", reverse("pass", args=[made.pk]))


def _asked(request: HttpRequest) -> Asked:
    given = request.POST.get("older_than", "") or "0"
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise Invalid(f"'{given[:40]}' is no number of seconds", field="older_than")
    seconds = int(given)
    older: datetime | None = clock.now().astimezone(UTC) - timedelta(seconds=seconds) if seconds else None
    everything = request.POST.get("what") == What.ALL
    return Asked(request.POST.get("prefix", ""), older, What.ALL.value if everything else What.MISSING.value)


def dry_run_of_wish(request: HttpRequest, wish: Any) -> HttpResponse:
    """Begin a dry run of what was typed into the form of a new rule. Raises what the service does."""
    made = passes.pass_dry_run_of_wish(actor=request.user, wish=wish, asked=Asked())
    return redirect("pass", made.pk)
