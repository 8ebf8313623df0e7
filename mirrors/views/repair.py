"""The plan for a commit that is not there yet, and the click that carries it out."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core.text.phrases import SHORT_ID, count
from db import clock
from mirrors.models import Commit
from mirrors.queries.find_commit import find_commit
from mirrors.services.copy_commands import copy_commands
from mirrors.services.repair import Repaired, commit_repair, offer_of, repair_plan
from mirrors.status.copying import on_request
from mirrors.views.tabs import SECTION, carry_out, find_visible, may_operate, may_see, outages_of
from web.pages import whole_or_part

EMBEDDED = ("plan", "repair-plan")
"""Where the plan stands on a commit's own page."""


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def commit_repaired(request: HttpRequest, name: str, commit: str) -> HttpResponse:
    """Say what repairing a commit would look at; on POST, do it."""
    mirror = find_visible(request, name)
    commit_row = find_commit(mirror, commit)
    if request.method == "POST":
        repair = partial(commit_repair, actor=request.user, mirror=mirror, commit=commit_row)
        return carry_out(request, mirror, repair, partial(_message, commit_row))
    now, embedded = clock.now(), request.htmx.target in EMBEDDED
    context = SECTION | {
        "mirror": mirror,
        "outages": outages_of(mirror, now),
        "commit": commit_row,
        "plan": repair_plan(mirror, commit_row),
        "offer": offer_of(mirror, commit_row),
        "commands": copy_commands(mirror, commit_row.sha),
        "may_operate": may_operate(request, mirror),
        "commit_url": reverse("mirror_commit", args=[mirror.name, commit_row.sha]),
        "repair_url": reverse("commit_repair", args=[mirror.name, commit_row.sha]),
        "bringing": on_request(mirror, now),
        "embedded": embedded,
        "now": now,
    }
    template = whole_or_part(request, "mirrors/repair.html", "mirrors/_repair.html")
    return render(request, "mirrors/_repair_plan.html" if embedded else template, context)


def _message(commit: Commit, done: Repaired) -> str:
    first = f"; {commit.sha[:SHORT_ID]} goes first" if done.first else ""
    return f"Checking {count(done.blockers, 'object')} again now{first}."
