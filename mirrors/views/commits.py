"""The pages of a mirror's commits: the list with their ladders, and one commit with what keeps it back."""

from __future__ import annotations

import json
from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.errors import NotFound
from core.mirroring.explain.commit_text import SETTLED
from core.text.phrases import SHORT_ID
from db import clock
from mirrors.models import Mirror
from mirrors.models.waived import told_waivers
from mirrors.queries.certificates import Certificate
from mirrors.queries.find_commit import find_commit
from mirrors.queries.missing import blockers_of
from mirrors.queries.missing_counts import COUNTED, is_cut_short
from mirrors.services.priority import mirror_prioritise
from mirrors.services.waivers import is_waivable
from mirrors.status.commit import certificate_of, ladder_rows, read_commit
from mirrors.status.commit_json import STAGES, commits_of, commits_of_branch
from mirrors.status.mirror import mirror_statuses
from mirrors.status.readable_regions import places_of
from mirrors.status.root_causes import outages_in
from mirrors.views.tabs import SECTION, carry_out, find_visible, may_change, may_operate, may_see, show_tab
from web.pages import Rows, page_of_rows, whole_or_part, with_query


@never_cache
@require_safe
@may_see
def commit_list(request: HttpRequest, name: str) -> HttpResponse:
    """A mirror's commits, the last one seen first; of one branch, or those that have come to one stage."""
    mirror, now = find_visible(request, name), clock.now()
    branch, stage = (request.GET.get(field, "").strip() for field in ("branch", "stage"))
    page, wrong = _page_of_commits(request, mirror, branch, stage if stage in STAGES else "")
    context = {
        "commits": ladder_rows(mirror, page.rows, now),
        "page": page,
        "branch": branch,
        "stage": stage,
        "stages": STAGES.items(),
        "error": wrong,
        "first_page": with_query(request),
    }
    return show_tab(request, mirror_statuses([mirror], now)[0], "mirror_commits", context)


def _page_of_commits(request: HttpRequest, mirror: Mirror, branch: str, stage: str) -> tuple[Rows, str]:
    """The asked page, and why there is none."""
    rows = commits_of(mirror, stage=stage)
    if not branch:
        return page_of_rows(request, rows, "commit_id", newest=True), ""
    try:
        return page_of_rows(request, commits_of_branch(rows, mirror, branch), "position", newest=True), ""
    except NotFound as error:
        return Rows([], "", first=True), str(error)


@never_cache
@require_safe
@may_see
def commit_detail(request: HttpRequest, name: str, commit: str) -> HttpResponse:
    """A commit at a mirror: what is going on, its ladder, what blocks it or what was proven."""
    mirror, now = find_visible(request, name), clock.now()
    reading = read_commit(mirror, find_commit(mirror, commit), now)
    sha = reading.commit.sha
    blockers = blockers_of(mirror, commit=sha)
    total = blockers[: COUNTED + 1].count()
    certificate, unproven = certificate_of(mirror, reading)
    concerned = Mirror.objects.visible_to(request.user).filter(source__commits__sha=sha)
    _, places = places_of(list(concerned.select_related("source")), sha)
    context = SECTION | {
        "mirror": mirror,
        "reading": reading,
        "total": min(total, COUNTED),
        "more": total > COUNTED,
        "page": page_of_rows(request, blockers, "pk", newest=False) if total else None,
        "all_named": not total or not is_cut_short(mirror),
        "certificate": _certificate_json(mirror, certificate) if certificate else "",
        "digest": certificate.digest() if certificate else "",
        "unproven": unproven,
        "places": places,
        "outages": outages_in({mirror.source.region, mirror.region, *(place.region for place in places)}, now),
        "may_operate": may_operate(request, mirror),
        "waivable": may_change(request, mirror) and is_waivable(mirror, reading.facts),
        "waiver": json.dumps({"commits": [sha], "reason": "…"}, ensure_ascii=False),
        "pending": not reading.settled and reading.stage not in SETTLED,
        "active": reading.stage not in SETTLED,
        "now": now,
        "body": json.dumps({"commit": sha}),
    }
    return render(request, whole_or_part(request, "mirrors/commit.html", "mirrors/_one_commit.html"), context)


def _certificate_json(mirror: Mirror, certificate: Certificate) -> str:
    return json.dumps(certificate.document(waivers=told_waivers(mirror)), indent=1)


@require_POST
@may_see
def commit_prioritise(request: HttpRequest, name: str) -> HttpResponse:
    """Have a commit copied and checked before all that waits longer."""
    mirror = find_visible(request, name)
    sha = find_commit(mirror, request.POST.get("commit", "")).sha
    first = partial(mirror_prioritise, actor=request.user, mirror=mirror, commit=sha)
    message = f"Queued: {sha[:SHORT_ID]} and what it needs are copied and validated first."
    return carry_out(request, mirror, first, message)
