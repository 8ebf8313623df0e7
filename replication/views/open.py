"""The objects of a rule that are not at a target as they are at the source."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.errors import Invalid
from core.replicating.reasons import reason_words
from core.replicating.states import Code, OpenStatus
from db import clock
from replication.models import OpenObject, Rule
from replication.queries.open_objects import OpenPages
from replication.services import links
from replication.services.links import find_link
from replication.services.rules import MOST_ITEMS
from replication.status.rules import rule_reading
from replication.views.rule import SECTION, find_visible, may, told_retry
from web.pages import ROWS, Rows, answered, whole_or_part, with_query
from web.paging import number_of

STATUSES = {
    OpenStatus.PENDING.value: "To copy",
    OpenStatus.FAILED.value: "Failed",
    OpenStatus.SKIPPED.value: "Skipped",
    OpenStatus.WAITING.value: "Delete, waiting",
    OpenStatus.DELETING.value: "To delete",
}
CODES = {code.value for code in Code if code.value}


@never_cache
@require_safe
def rule_open(request: HttpRequest, rule: str) -> HttpResponse:
    """What is open on a link, the first unless the address names another one; filtered, by the page."""
    found, now = find_visible(request, rule), clock.now()
    reading = rule_reading(found, now)
    link = find_link(found, _number(request.GET.get("link", "")))
    chosen = {
        "status": _one_of(request, "status", STATUSES),
        "code": _one_of(request, "code", CODES),
        "prefix": request.GET.get("prefix", "")[:1024],
    }
    page = _page(request, OpenPages(link, **chosen))
    csv = reverse("api-link-open", args=[found.name, link.number])
    context = SECTION | {
        "rule": found,
        "reading": reading,
        "of": next(one for one in reading.links if one.link.pk == link.pk),
        "chosen": chosen,
        "narrowed": any(chosen.values()),
        "rows": [_told(row) for row in page.rows],
        "page": page,
        "statuses": STATUSES,
        "csv": csv + with_query(request, format="csv", link=None),
        "now": now,
        **may(request, found),
    }
    part = whole_or_part(request, "replication/open.html", "replication/_open.html")
    return render(request, part, context)


@require_POST
def rule_open_retry(request: HttpRequest, rule: str) -> HttpResponse:
    """Try some of them at once: those that are selected, those of a reason, or all."""
    found = find_visible(request, rule)
    number = _number(request.POST.get("link", ""))
    verb = partial(links.link_retry, actor=request.user, name=found.name, number=number)
    which = request.POST.get("which", "")
    if which == "selected":
        ids = [number_of(text, "item") for text in request.POST.getlist("item")[:MOST_ITEMS]]
        verb = partial(verb, ids=ids)
    elif which == "reason" and request.POST.get("code", "") in CODES:
        verb = partial(verb, code=request.POST["code"])
    elif which != "all":
        raise Invalid("choose which ones: those selected, those with a reason, or all", field="which")
    return answered(request, verb, told_retry, _back(found))


def _page(request: HttpRequest, pages: OpenPages) -> Rows:
    after = request.GET.get("after", "")
    rows, following = pages.page(after, ROWS)
    return Rows(rows, with_query(request, after=following) if following else "", not after)


def _back(rule: Rule) -> str:
    return reverse("rule_open", args=[rule.name])


def _number(given: str) -> int:
    return number_of(given, "link") if given else 1


def _one_of(request: HttpRequest, name: str, known: Any) -> str:
    """A filter's value; one that means nothing is none."""
    given = request.GET.get(name, "")
    return given if given in known else ""


def _told(row: OpenObject) -> dict[str, Any]:
    why = row.detail or (reason_words(row.code) if row.code else "")
    size = row.size if row.size >= 0 else None  # nobody could ask yet
    return {"row": row, "word": STATUSES[row.status], "why": why, "size": size}
