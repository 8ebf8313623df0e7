"""Deletions of a rule that wait for somebody; and what is confirmed of its links."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.text.phrases import count
from db import clock
from replication.models import Approval, Rule
from replication.services import approvals
from replication.status.rules import rule_reading
from replication.views.rule import SECTION, find_visible, may
from web.pages import answered, page_of_rows, whole_or_part


@never_cache
@require_safe
def rule_deletes(request: HttpRequest, rule: str) -> HttpResponse:
    """What waits, and what became of what did; the newest first."""
    found, now = find_visible(request, rule), clock.now()
    rows = Approval.objects.filter(link__rule=found).select_related("link")
    page = page_of_rows(request, rows, "pk", newest=True)
    context = SECTION | {
        "rule": found,
        "reading": rule_reading(found, now),
        "rows": page.rows,
        "page": page,
        "noun": _noun(found),
        "now": now,
        **may(request, found),
    }
    return render(request, whole_or_part(request, "replication/deletes.html", "replication/_deletes.html"), context)


@require_POST
def rule_deletes_decide(request: HttpRequest, rule: str, approval: int, approved: bool) -> HttpResponse:
    """Have them done, or drop them."""
    found = find_visible(request, rule)
    reason = request.POST.get("reason", "")[:1000]
    decide = partial(
        approvals.approval_decide,
        actor=request.user,
        name=found.name,
        number=approval,
        approved=approved,
        reason=reason,
    )
    return answered(request, decide, _told, reverse("rule_deletes", args=[found.name]))


def _noun(rule: Rule) -> str:
    """What is counted: where single versions are deleted, a delete marker is one, too."""
    return "version" if rule.purges else "object"


def _told(decided: Approval) -> str:
    number = count(decided.number, _noun(decided.link.rule))
    if decided.state == Approval.State.APPROVED:
        return f"Approved: {number} are deleted, but for what the source has again by then."
    return f"Rejected: {number} stay, and are not asked for again until something changes."


@require_POST
def link_confirm_target(request: HttpRequest, rule: str, link: int) -> HttpResponse:
    """The target is the right one."""
    found = find_visible(request, rule)
    confirm = partial(approvals.confirm_target, actor=request.user, name=found.name, number=link)
    text = "Confirmed: what the target lacks is copied."
    return answered(request, confirm, text, reverse("rule", args=[found.name]))


@require_POST
def link_confirm_source(request: HttpRequest, rule: str, link: int) -> HttpResponse:
    """The source is the right one."""
    found = find_visible(request, rule)
    confirm = partial(approvals.confirm_source, actor=request.user, name=found.name, number=link)
    text = "Confirmed: the next whole comparison judges deletions anew."
    return answered(request, confirm, text, reverse("rule", args=[found.name]))
