"""The page of a commit wherever it is: in which regions it can be read, where it waits, and for what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console import exports_summary
from console.search.commit_everywhere import CommitPlace, commit_everywhere
from core.errors import NotFound
from core.text.phrases import Phrase, count, sentence
from db import clock
from mirrors.models import Commit, Mirror
from mirrors.status.root_causes import outages_in
from mirrors.views.tabs import may_see
from web.pages import whole_or_part


@never_cache
@require_safe
@may_see
def commit_page(request: HttpRequest, commit: str) -> HttpResponse:
    """One commit at its source, at each of its mirrors, and where it was exported to."""
    now, visible = clock.now(), Mirror.objects.visible_to(request.user)
    try:
        sha, places = commit_everywhere(list(visible.select_related("source")), commit, now)
    except NotFound as error:
        exports = exports_summary.exports_of_commit(request.user, commit)
        if not exports:
            raise Http404(str(error)) from error
        sha, places = exports[0].last_success_ref, []
    if commit != sha:
        return redirect("commit", sha)
    row = Commit.objects.filter(sha=sha, repository__mirrors__in=visible).select_related("repository").first()
    context: dict[str, Any] = {
        "section": "search",
        "sha": sha,
        "commit": row,
        "made_at": datetime.fromtimestamp(row.creation_date, UTC) if row else None,
        "places": places,
        "told": told_of(places),
        "outages": outages_in({row.place.region for row in places}, now),
        "exports": exports_summary.exports_of_commit(request.user, sha),
        "now": now,
        "active": any(place.place.readable.answer is not True for place in places),
    }
    return render(request, whole_or_part(request, "search/commit.html", "search/_commit.html"), context)


def told_of(places: list[CommitPlace]) -> Phrase:
    """One sentence for all places."""
    if not places:
        return sentence("No mirror has this commit")
    known = [place.place.readable.answer for place in places]
    readable = known.count(True)
    parts = [f"readable in {readable:,} of {count(len(places), 'place')}"]
    if missing := known.count(False):
        parts.append(f"not readable in {missing:,}")
    if unknown := known.count(None):
        parts.append(f"unknown in {unknown:,}")
    return sentence(", ".join(parts))
