"""Waiving a commit that can't be read any more, on its page: what follows is told first. The list, and withdrawing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.contrib import messages
from django.db.models import Count, F, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access.policies import repository_arn
from core.errors import LakeMirrorError
from core.text.phrases import SHORT_ID
from db import clock
from mirrors.models import Commit, Mirror, MirrorCommit, Waiver
from mirrors.queries.find_commit import find_commit
from mirrors.services.waiver_impact import waiver_impact
from mirrors.services.waivers import check_waivable, find_waiver, waiver_give, waiver_withdraw
from mirrors.views.forms import WaiverForm
from mirrors.views.tabs import SECTION, carry_out, find_visible, may_change, may_see, outages_of
from rbac import services as rbac
from web.errors import status_of
from web.pages import page_of_rows, with_query

NAMED = 5


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def commit_waive(request: HttpRequest, name: str, commit: str) -> HttpResponse:
    """Say what follows, and ask why and for the commit's id; then waive it."""
    mirror = find_visible(request, name)
    rbac.require(request.user, ("fs:MirrorRepository", repository_arn(mirror.source.name)))
    commit_row = find_commit(mirror, commit)
    form = WaiverForm(request.POST if request.method == "POST" else None, commit=commit_row.sha, mirror=mirror.name)
    if not (form.is_bound and form.is_valid()):
        return _show(request, mirror, commit_row, form, 400 if form.is_bound else 200)
    try:
        reason = form.cleaned_data["reason"]
        waiver_give(actor=request.user, mirror=mirror, commits=[commit_row.sha], reason=reason)
    except LakeMirrorError as error:
        form.add_error(None, str(error))
        return _show(request, mirror, commit_row, form, int(status_of(error) or 500))
    messages.success(
        request, f"{commit_row.sha[:SHORT_ID]} is waived: commits that descend from it no longer wait for it."
    )
    return redirect("mirror_commit", mirror.name, commit_row.sha)


def _show(request: HttpRequest, mirror: Mirror, commit: Commit, form: WaiverForm, status: int) -> HttpResponse:
    now = clock.now()
    context = SECTION | {
        "mirror": mirror,
        "outages": outages_of(mirror, now),
        "commit": commit,
        "form": form,
        "impact": waiver_impact(mirror, commit),
        "refused": _why_not(mirror, commit),
        "now": now,
    }
    return render(request, "mirrors/waive.html", context, status=status)


def _why_not(mirror: Mirror, commit: Commit) -> str:
    """What keeps it from being waived, if anything does."""
    try:
        check_waivable(mirror, commit.sha)
    except LakeMirrorError as error:
        return str(error)
    return ""


@never_cache
@require_safe
@may_see
def waiver_list(request: HttpRequest, name: str) -> HttpResponse:
    """What was waived at a mirror, the last one first."""
    mirror = find_visible(request, name)
    page = page_of_rows(
        request, mirror.waivers.annotate(number=Count("commits")).prefetch_related("objects_waived"), "pk", newest=True
    )
    now = clock.now()
    context = SECTION | {
        "mirror": mirror,
        "outages": outages_of(mirror, now),
        "page": page,
        "rows": _with_commits(page.rows),
        "first_page": with_query(request),
        "may_change": may_change(request, mirror),
        "now": now,
    }
    return render(request, "mirrors/waivers.html", context)


def _with_commits(waivers: Sequence[Waiver]) -> list[tuple[Waiver, list[str]]]:
    """Each with the first of its commits: one query for all of them."""
    place = Window(RowNumber(), partition_by=[F("waiver_id")], order_by="commit_id")
    rows = MirrorCommit.objects.filter(waiver__in=waivers).annotate(place=place).filter(place__lte=NAMED)
    named: dict[int, list[str]] = defaultdict(list)
    for waiver_id, sha in rows.order_by("commit_id").values_list("waiver_id", "commit__sha"):
        named[waiver_id].append(sha)
    return [(waiver, named[waiver.pk]) for waiver in waivers]


@require_POST
@may_see
def waiver_withdrawn(request: HttpRequest, name: str, waiver: int) -> HttpResponse:
    """Let what was accepted count again."""
    mirror = find_visible(request, name)
    rbac.require(request.user, ("fs:MirrorRepository", repository_arn(mirror.source.name)))
    waiver_row = find_waiver(mirror, waiver)
    withdraw: partial[Any] = partial(waiver_withdraw, actor=request.user, waiver=waiver_row)
    message = (
        f"Waiver {waiver} is withdrawn. No branch moves back; commits that are not promoted yet wait for it again."
    )
    return carry_out(request, mirror, withdraw, message)
