"""The page of what a text was found in; a whole id leads straight to its own page."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.search.find import FEW, LOOKED, search, text_of
from console.search.locate import question
from core.errors import Invalid
from db import clock
from exports.status.export import export_statuses
from installations import contact
from mirrors.models import Mirror
from mirrors.status.mirror import brief_statuses
from mirrors.views.tabs import may_see
from replication.status.rules import rule_readings

SHOWN = 200
"""So many characters of an impossible text are shown again."""


@never_cache
@require_safe
@may_see
def search_page(request: HttpRequest) -> HttpResponse:
    """What fits the text of the box, by kind."""
    given = request.GET.get("q", "")
    context = {"section": "search", "q": given[:SHOWN], "few": FEW, "limit": LOOKED, "now": clock.now()}
    if not given.strip():
        return render(request, "search/search.html", context | question(request))
    try:
        text = text_of(given)
    except Invalid as error:
        return render(request, "search/search.html", context | {"error": str(error)}, status=400)
    results = search(Mirror.objects.visible_to(request.user), text, request.user)
    if only := results.only_one(text):
        mirror, commit = only
        return redirect("commit", commit) if commit else redirect("mirror", mirror)
    now = context["now"]
    states = {reading.mirror.pk: reading for reading in brief_statuses(results.mirrors.rows, now)}
    told = {reading.export.pk: reading.told for reading in export_statuses(results.exports.rows, now)}
    rules = {reading.rule.pk: reading.told for reading in rule_readings(results.rules.rows, now)}
    context |= {"states": states, "told": told, "rules": rules, "silent": {one.region for one in contact.outages()}}
    call = f"{reverse('api-search')}?{urlencode({'q': text})}"
    return render(request, "search/search.html", context | {"q": text, "results": results, "call": call})
