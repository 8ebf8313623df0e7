"""The form of a new rule, with what is checked while one types; and that of a rule's settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core.errors import LakeMirrorError
from rbac import services as rbac
from rbac.signin.form_recovery import GIVEN_BACK, keeps_typed, take
from replication.models import Rule
from replication.preflight.checks import check_plan
from replication.preflight.cost import cost_of_wish
from replication.services import rules
from replication.services.rights import require_some_creation
from replication.services.rules import UPDATE, etag_of, rights_to_create
from replication.views.forms import ADD, RuleForm, SettingsForm, targets_in
from replication.views.passes import dry_run_of_wish
from replication.views.planned_call import api_call, create_command
from replication.views.rule import SECTION, find_visible, right_on
from web.errors import status_of
from web.etags import Seen

CHECKS = "preflight"
Context = dict[str, Any]


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@keeps_typed
def rule_new(request: HttpRequest) -> HttpResponse:
    """The form of a new rule. What was typed stays there, whatever becomes of it. Raises Denied for who can create
    none."""
    require_some_creation(request.user)
    if request.method != "POST":
        given = take(request)
        if given is not None:
            messages.info(request, GIVEN_BACK)
        return _show(request, RuleForm.typed(given) if given is not None else RuleForm.fresh())
    if ADD in request.POST:
        return _show(request, RuleForm.typed(request.POST, more=True))
    if _asks(request):
        return _tell(request, RuleForm.typed(request.POST))
    form = RuleForm(request.POST, number=targets_in(request.POST))
    if not form.is_valid():
        return _show(request, form, 400)
    rbac.require(request.user, *rights_to_create(form.wish))
    if asked := {"dry_run", "cost"} & request.POST.keys():
        return _what_if(request, form, cost="cost" in asked)
    return _create(request, form)


def _what_if(request: HttpRequest, form: RuleForm, *, cost: bool) -> HttpResponse:
    """What the rule would do, or cost; it is not created."""
    try:
        if not cost:
            return dry_run_of_wish(request, form.wish)
        return _show(request, form, cost=cost_of_wish(actor=request.user, wish=form.wish))
    except LakeMirrorError as error:
        form.refuse(error)
        return _show(request, form, int(status_of(error) or 400))


def _create(request: HttpRequest, form: RuleForm) -> HttpResponse:
    """Save it, unless a check fails and nobody insists."""
    wish = form.wish
    try:
        rules.check_wish(actor=request.user, wish=wish)
        preflight = check_plan(actor=request.user, wish=wish, writing=True)
        failed = preflight.failed
        if failed and "anyway" not in request.POST:
            return _show(request, form, 409, summary=preflight, wrote=True, failing=failed)
        insists = "anyway" in request.POST
        rule = rules.rule_create(actor=request.user, wish=replace(wish, overwrite=insists), failed_checks=failed)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show(request, form, int(status_of(error) or 400))
    messages.success(request, f"The rule {rule.name} is created. Its places are being compared.")
    return redirect("rule", rule.name)


def _asks(request: HttpRequest) -> bool:
    """Whether somebody only wants to know, and nothing is to be saved."""
    return request.htmx.target == CHECKS or "check" in request.POST


def _tell(request: HttpRequest, form: RuleForm) -> HttpResponse:
    """The part of the page that was asked for, or all of it."""
    checked = _checks(request, form, writing="check" in request.POST)
    if request.htmx.target == CHECKS:
        return render(request, "replication/_checks.html", checked | _typed(request, form))
    return _show(request, form, **checked)


def _checks(request: HttpRequest, form: RuleForm, *, writing: bool) -> Context:
    wish = form.plan()
    if not (wish.name and wish.uri and wish.targets):
        return {}
    try:
        return {"summary": check_plan(actor=request.user, wish=wish, writing=writing), "wrote": writing}
    except LakeMirrorError as error:
        return {"preflight_refused": str(error)}


def _typed(request: HttpRequest, form: RuleForm) -> Context:
    wish = form.plan()
    return {"api_call": api_call(request, wish), "command": create_command(request, wish)}


def _show(request: HttpRequest, form: RuleForm, status: int = 200, **extra: Any) -> HttpResponse:
    context = SECTION | {"form": form, **_typed(request, form)} | extra
    return render(request, "replication/new.html", context, status=status)


# --- settings ---------------------------------------------------------------------------------------------------------


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@keeps_typed
def rule_edit(request: HttpRequest, rule: str) -> HttpResponse:
    """Change what is copied, how often all is compared, and the labels."""
    found = find_visible(request, rule)
    rbac.require(request.user, right_on(UPDATE, found))
    if request.method != "POST":
        given = take(request)
        if given is not None:
            messages.info(request, GIVEN_BACK)
        form = SettingsForm(initial=given.dict()) if given is not None else SettingsForm.of(found)
        return _show_settings(request, found, form)
    form = SettingsForm(request.POST, initial={"scan_every": found.scan_every})
    if not form.is_valid():
        return _show_settings(request, found, form, 400)
    seen = Seen(frozenset([request.POST["seen"]])) if request.POST.get("seen") else Seen()
    try:
        rules.rule_update(actor=request.user, name=found.name, changes=form.changes, seen=seen)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show_settings(request, found, form, int(status_of(error) or 400))
    messages.success(request, "Saved.")
    return redirect("rule", found.name)


def _show_settings(request: HttpRequest, rule: Rule, form: SettingsForm, status: int = 200) -> HttpResponse:
    context = SECTION | {"form": form, "rule": rule, "seen": etag_of(rule)}
    return render(request, "replication/edit.html", context, status=status)
