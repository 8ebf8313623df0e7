"""The page of one rule, and what is clicked there. Each click is a POST that also works as a plain form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access.policies import Right
from core.access.rule_rights import rule_arn
from core.errors import Invalid
from core.replicating.wishes import BOUNDS, STORE_BYTES
from core.text.phrases import count
from db import clock
from rbac import services as rbac
from replication.models import Rule
from replication.services import links, rules
from replication.services.approvals import APPROVE
from replication.services.rules import DELETE, OPERATE, READ, UPDATE, find_rule
from replication.status.rules import rule_reading
from web.pages import answered, whole_or_part
from web.pauses import stated_by_form

SECTION = {"section": "replication"}


def find_visible(request: HttpRequest, name: str) -> Rule:
    """The rule, for somebody who may see it. Raises NotSignedIn, Denied and NotFound."""
    rbac.require(request.user, (READ, rule_arn(name)))
    return find_rule(name)


def right_on(action: str, rule: Rule) -> Right:
    """That to do this with a rule."""
    return action, rule_arn(rule.name)


def may(request: HttpRequest, rule: Rule) -> dict[str, bool]:
    """What who looks may do with a rule."""
    rights = {"may_change": UPDATE, "may_delete": DELETE, "may_operate": OPERATE, "may_approve": APPROVE}
    return {name: rbac.allowed(request.user, *right_on(action, rule)) for name, action in rights.items()}


@never_cache
@require_safe
def rule_detail(request: HttpRequest, rule: str) -> HttpResponse:
    """One rule: how it stands, and each of its links."""
    found, now = find_visible(request, rule), clock.now()
    context = SECTION | {"rule": found, "reading": rule_reading(found, now), "now": now, **may(request, found)}
    return render(request, whole_or_part(request, "replication/rule.html", "replication/_rule.html"), context)


# --- clicks -----------------------------------------------------------------------------------------------------------


@require_POST
def rule_pause(request: HttpRequest, rule: str, paused: bool) -> HttpResponse:
    """Stop, or go on."""
    found = find_visible(request, rule)
    pause = _pausing(request, partial(rules.rule_pause, actor=request.user, name=found.name), paused)
    return _carry_out(request, found, pause, _paused(found.name, paused))


@require_POST
def rule_scan(request: HttpRequest, rule: str) -> HttpResponse:
    """Compare all places now."""
    found = find_visible(request, rule)
    scan = partial(rules.rule_scan, actor=request.user, name=found.name)
    return _carry_out(request, found, scan, "Queued: source and targets are compared now.")


@require_POST
def rule_retry(request: HttpRequest, rule: str) -> HttpResponse:
    """Try everything that is open at once."""
    found = find_visible(request, rule)
    return _carry_out(request, found, partial(rules.rule_retry, actor=request.user, name=found.name), told_retry)


@require_POST
def link_pause(request: HttpRequest, rule: str, link: int, paused: bool) -> HttpResponse:
    """Stop copying to one target, or go on."""
    found = find_visible(request, rule)
    verb = partial(links.link_pause, actor=request.user, name=found.name, number=link)
    return _carry_out(request, found, _pausing(request, verb, paused), _paused(f"Link {link}", paused))


@require_POST
def link_limits(request: HttpRequest, rule: str, link: int) -> HttpResponse:
    """How fast it may copy, from now on."""
    found = find_visible(request, rule)

    def change() -> None:
        sent = [*BOUNDS, *([STORE_BYTES] if STORE_BYTES in request.POST else [])]
        changes = {name: _limit(request.POST.get(name, ""), name) for name in sent}
        links.link_limits(actor=request.user, name=found.name, number=link, changes=changes)

    return _carry_out(request, found, change, "Saved: the limits apply within 10 s.")


@require_POST
def link_retry(request: HttpRequest, rule: str, link: int) -> HttpResponse:
    """Try what is open on one link at once: all of it, or what failed for a reason."""
    found = find_visible(request, rule)
    code = request.POST.get("code", "")
    retry = partial(links.link_retry, actor=request.user, name=found.name, number=link, code=code)
    return _carry_out(request, found, retry, told_retry)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def rule_delete(request: HttpRequest, rule: str) -> HttpResponse:
    """Say what goes and what stays, then delete."""
    found = find_visible(request, rule)
    rbac.require(request.user, right_on(DELETE, found))
    if request.method != "POST":
        context = {"rule": found, "links": list(found.links.kept().order_by("number"))}
        return render(request, "replication/delete.html", SECTION | context)
    rules.rule_delete(actor=request.user, name=found.name, reason=request.POST.get("reason", "")[:1000])
    messages.success(request, f"The rule {found.name} is deleted. All objects stay where they are.")
    return redirect("rules")


# --- shared -----------------------------------------------------------------------------------------------------------


def told_retry(number: int) -> str:
    """What is told of a retry of so many objects."""
    return f"Queued: {count(number, 'object')} tried again now." if number else "There is nothing to retry."


def _pausing(request: HttpRequest, verb: Callable[..., object], paused: bool) -> Callable[[], object]:
    def pause() -> object:
        return verb(paused=paused, stated=stated_by_form(request.POST) if paused else None)

    return pause


def _paused(what: str, paused: bool) -> str:
    if paused:
        return f"{what} is paused: what is being copied now ends, nothing new begins."
    return f"{what} is resumed."


def _limit(typed: str, name: str) -> int | None:
    text = typed.strip().replace(",", "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 19):
        hint = "" if name == "workers" else "Leave it empty for no limit"
        raise Invalid(f"'{typed[:40]}' is not a whole number", field=name, hint=hint)
    return int(text) if text else None


def _carry_out(
    request: HttpRequest, rule: Rule, verb: Callable[[], object], message: str | Callable[[Any], str]
) -> HttpResponse:
    return answered(request, verb, message, reverse("rule", args=[rule.name]))
