"""The form of one more target of a rule, with what is checked while one types; and the page that asks before one is
removed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core.errors import LakeMirrorError
from core.replicating.wishes import TargetWish
from deployment.wiring import region_settings
from rbac import services as rbac
from rbac.signin.form_recovery import GIVEN_BACK, keeps_typed, take
from replication.api.bodies import LONGEST_URI
from replication.models import Rule
from replication.preflight.checks import check_target_plan
from replication.services import targets
from replication.services.links import find_link
from replication.services.rules import UPDATE
from replication.services.targets import rights_to_add
from replication.views.planned_call import rule_command
from replication.views.rule import SECTION, find_visible, right_on
from web.api_snippets import curl
from web.errors import status_of

CHECKS = "preflight"
Context = dict[str, Any]


class TargetForm(forms.Form):
    """Where to. The checks that count are those of the services."""

    region = forms.ChoiceField(label="Region of the target")
    uri = forms.CharField(
        label="Target",
        max_length=LONGEST_URI,
        help_text="Like s3://other-bucket/folder. Objects keep their names below it.",
    )

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, label_suffix="", **more)
        self.fields["region"].choices = [(region, region) for region in region_settings.names()]
        for field in self.fields.values():
            field.widget.attrs.update(autocapitalize="none", autocomplete="off", spellcheck="false")

    @classmethod
    def typed(cls, data: Mapping[str, str]) -> TargetForm:
        """The form with what was typed so far, which nobody has to answer for yet."""
        return cls(initial={name: data.get(name, "") for name in ("region", "uri")})

    @property
    def wish(self) -> TargetWish:
        """What was typed, be it finished or not."""
        return TargetWish(*(str(self[name].value() or "").strip() for name in ("region", "uri")))

    def refuse(self, error: LakeMirrorError) -> None:
        """Say why a service did not accept it, beside the field that it names."""
        self.add_error(error.field if error.field in self.fields else None, str(error))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@keeps_typed
def target_new(request: HttpRequest, rule: str) -> HttpResponse:
    """Have a rule copy to one more place."""
    found = find_visible(request, rule)
    rbac.require(request.user, right_on(UPDATE, found))
    if request.method != "POST":
        given = take(request)
        if given is not None:
            messages.info(request, GIVEN_BACK)
        others = [region for region in region_settings.names() if region != found.region]
        return _show(request, found, TargetForm.typed(given or {"region": (others or [found.region])[0]}))
    if request.htmx.target == CHECKS or "check" in request.POST:
        return _tell(request, found, TargetForm.typed(request.POST))
    form = TargetForm(request.POST)
    if not form.is_valid():
        return _show(request, found, form, 400)
    rbac.require(request.user, *rights_to_add(found.name, form.wish.uri))
    return _add(request, found, form)


def _add(request: HttpRequest, rule: Rule, form: TargetForm) -> HttpResponse:
    """Save it, unless a check fails and nobody insists."""
    insists = "anyway" in request.POST
    try:
        targets.check_target(actor=request.user, name=rule.name, wish=form.wish)
        preflight = check_target_plan(actor=request.user, rule=rule, target=form.wish, overwrite=False, writing=True)
        failed = preflight.failed
        if failed and not insists:
            return _show(request, rule, form, 409, summary=preflight, wrote=True, failing=failed)
        link = targets.link_add(
            actor=request.user, name=rule.name, wish=form.wish, overwrite=insists, failed_checks=failed
        )
    except LakeMirrorError as error:
        form.refuse(error)
        return _show(request, rule, form, int(status_of(error) or 400))
    messages.success(request, f"Target {link.number} is added. It is being compared with the source.")
    return redirect("rule", rule.name)


def _tell(request: HttpRequest, rule: Rule, form: TargetForm) -> HttpResponse:
    """The part of the page that was asked for, or all of it."""
    checked: Context = {}
    writing = "check" in request.POST
    if form.wish.uri:
        try:
            summary = check_target_plan(
                actor=request.user, rule=rule, target=form.wish, overwrite=False, writing=writing
            )
            checked = {"summary": summary, "wrote": writing}
        except LakeMirrorError as error:
            checked = {"preflight_refused": str(error)}
    if request.htmx.target == CHECKS:
        return render(request, "replication/_target_checks.html", checked | _planned(request, rule, form))
    return _show(request, rule, form, **checked)


def _planned(request: HttpRequest, rule: Rule, form: TargetForm) -> Context:
    """The same as a call of the API, and as a command."""
    region, uri = form.wish.region, form.wish.uri or "S3-URI"
    body = json.dumps({"region": region, "uri": uri}, ensure_ascii=False)
    address = request.build_absolute_uri(reverse("api-links", args=[rule.name]))
    command = rule_command(request, "add-target", rule.name, region, uri)
    return {"api_call": curl("POST", address, body), "command": command}


def _show(request: HttpRequest, rule: Rule, form: TargetForm, status: int = 200, **extra: Any) -> HttpResponse:
    context = SECTION | {"form": form, "rule": rule, **_planned(request, rule, form)} | extra
    return render(request, "replication/target_new.html", context, status=status)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def target_remove(request: HttpRequest, rule: str, link: int) -> HttpResponse:
    """Say what goes and what stays, then remove a target."""
    found = find_visible(request, rule)
    rbac.require(request.user, right_on(UPDATE, found))
    target = find_link(found, link)
    if request.method != "POST":
        only = found.links.kept().count() < 2
        context = SECTION | {"rule": found, "link": target, "only": only}
        return render(request, "replication/target_remove.html", context)
    reason = request.POST.get("reason", "")[:1000]
    targets.link_remove(actor=request.user, name=found.name, number=link, reason=reason)
    messages.success(request, f"Target {link} is removed. All objects stay where they are.")
    return redirect("rule", found.name)
