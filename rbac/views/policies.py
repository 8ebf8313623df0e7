"""The pages of policies: the list, one policy, and how one is written, looked at and saved."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access.policies import ALL, auth_arn
from core.access.policies import Policy as Reading
from core.access.policy_text import Wrong, pretty
from core.errors import Invalid, LakeMirrorError
from rbac import services
from rbac.api.permission_schemas import names_seen
from rbac.models import Group, Policy, User
from rbac.services.builtin_updates import OldPolicy, old_policies, update_policies
from rbac.services.policy_impact import impact
from rbac.services.policy_warnings import actions
from rbac.views import policy_draft
from rbac.views.parts import by_name, carry_out, reason_of, show, typed
from rbac.views.policy_templates import BLANKS, ONE_MIRROR, TEMPLATES, Template
from rbac.views.users import may_create_holders
from web.errors import status_of

TAB = "policies"
_NAMED = 50
_CHOICES = 500


@never_cache
@require_safe
def policy_list(request: HttpRequest) -> HttpResponse:
    """All policies, by name."""
    services.require(request.user, ("auth:ListPolicies", ALL))
    counted = Policy.objects.annotate(people=Count("attachments__user"), groups=Count("attachments__group"))
    context = {
        "page": by_name(request, counted, "name"),
        "may_create": services.allowed(request.user, "auth:CreatePolicy", auth_arn("policy", ALL)),
        "old": (old := old_policies()),
        "updatable": [policy for policy in old if _may_update(request, policy)],
    }
    return show(request, "policies.html", TAB, context)


def _may_update(request: HttpRequest, old: OldPolicy) -> bool:
    return not old.edited and services.allowed(request.user, "auth:UpdatePolicy", old.policy.arn)


@require_POST
def policies_update(request: HttpRequest) -> HttpResponse:
    """Bring built-in policies of an earlier version up to date: those that nobody edited."""
    services.require(request.user, ("auth:ListPolicies", ALL))
    names = [old.name for old in old_policies() if not old.edited]
    services.require(request.user, *(("auth:UpdatePolicy", auth_arn("policy", name)) for name in names))
    verb = partial(update_policies, actor=request.user, names=names)
    done = f"Updated {', '.join(names)}." if names else "All built-in policies are up to date."
    return carry_out(request, verb, done, "policies")


@never_cache
@require_safe
def policy_detail(request: HttpRequest, name: str) -> HttpResponse:
    """One policy: its statements, and who has it."""
    services.require(request.user, ("auth:ReadPolicy", auth_arn("policy", name)))
    policy = services.policy_find(name)
    actions = {"update": "auth:UpdatePolicy", "delete": "auth:DeletePolicy"}
    context = {
        "policy": policy,
        "reading": services.reading_of(policy),
        "text": pretty(policy.document),
        **_holders(request, policy),
        **_others(request, policy),
        "may_create_user": may_create_holders(request),
        "may": {key: services.allowed(request.user, action, policy.arn) for key, action in actions.items()},
    }
    return show(request, "policy.html", TAB, context)


def _holders(request: HttpRequest, policy: Policy) -> dict[str, Any]:
    """On whom it hangs: the first of them that the reader may see, and how many there are."""
    users = User.objects.filter(attachments__policy=policy).order_by("username")
    groups = Group.objects.filter(attachments__policy=policy).order_by("name")
    return {
        "users": [user for user in users[:_NAMED] if services.allowed(request.user, "auth:ReadUser", user.arn)],
        "groups": [group for group in groups[:_NAMED] if services.allowed(request.user, "auth:ReadGroup", group.arn)],
        "holders": users.count() + groups.count(),
    }


def _others(request: HttpRequest, policy: Policy) -> dict[str, Any]:
    """Users and groups that the reader may attach it to, and see: the first of them by name."""
    users = User.objects.exclude(attachments__policy=policy).order_by("username")[:_CHOICES]
    groups = Group.objects.exclude(attachments__policy=policy).order_by("name")[:_CHOICES]
    may = partial(services.allowed, request.user)
    sees = {kind: may(f"auth:List{kind}s", ALL) for kind in ("User", "Group")}
    return {
        "other_users": [user.username for user in users if sees["User"] and may("auth:AttachPolicy", user.arn)],
        "other_groups": [group.name for group in groups if sees["Group"] and may("auth:AttachPolicy", group.arn)],
    }


@require_POST
def policy_attached(request: HttpRequest, name: str) -> HttpResponse:
    """Attach a policy to the chosen user or group."""
    kind, _, holder = typed(request, "holder", 140).partition(":")
    if kind not in ("user", "group"):
        raise Invalid("choose a user or a group", field="holder")
    services.require(request.user, ("auth:AttachPolicy", auth_arn(kind, holder)))
    policy = services.policy_find(name)
    to = {"user": services.user_find(holder)} if kind == "user" else {"group": services.group_find(holder)}
    verb = partial(services.policy_attach, actor=request.user, policy=policy, **to)
    return carry_out(request, verb, f"Attached {name} to {holder}.", "policy", name)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def policy_delete(request: HttpRequest, name: str) -> HttpResponse:
    """Say what nobody could do any more, then delete."""
    services.require(request.user, ("auth:DeletePolicy", auth_arn("policy", name)))
    policy = services.policy_find(name)
    if request.method != "POST":
        effect = impact(name, None)
        context = {"policy": policy, "impact": effect, "seen": names_seen(effect, request.user)}
        return show(request, "policy_delete.html", TAB, context)
    try:
        services.policy_delete(actor=request.user, policy=policy, reason=reason_of(request))
    except LakeMirrorError as error:
        messages.error(request, f"Nothing was changed: {error}.")
        return redirect("policy", name)
    messages.success(request, f"Deleted {name}, and detached it everywhere.")
    return redirect("policies")


# --- writing one ------------------------------------------------------------------------------------------------------


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def policy_new(request: HttpRequest) -> HttpResponse:
    """Choose a template, fill in its blanks, then write."""
    services.require(request.user, ("auth:ListPolicies", ALL))
    if request.method == "POST":
        return _written(request, None)
    template = TEMPLATES.get(request.GET.get("template", ""))
    if template is None:
        return _choose_template(request, request.GET.get("mirror", "")[:128])
    filled = not template.blanks or any(name in request.GET for name in template.blanks)
    if not filled:
        return _ask_blanks(request, template)
    try:
        document = template.fill(request.GET.dict())
    except Invalid as error:
        return _ask_blanks(request, template, error)
    return _editor(request, policy_draft.of_document(document, as_json=request.GET.get("as") == "json"), None)


def _choose_template(request: HttpRequest, mirror: str) -> HttpResponse:
    """The templates; with the name of a mirror, those by which people get to that one."""
    templates = [TEMPLATES[key] for key in ONE_MIRROR] if mirror else list(TEMPLATES.values())
    names = {f"{template.name}-{mirror}" for template in templates} if mirror else set()
    existing = sorted(Policy.objects.filter(name__in=names).values_list("name", flat=True))
    context = {"templates": templates, "mirror": mirror, "existing": existing}
    return show(request, "policy_templates.html", TAB, context)


def _ask_blanks(request: HttpRequest, template: Template, error: Invalid | None = None) -> HttpResponse:
    blanks = [
        {"name": name, "label": BLANKS[name][0], "help": BLANKS[name][1], "value": request.GET.get(name, "")}
        for name in template.blanks
    ]
    context = {"template": template, "blanks": blanks, "error": error}
    return show(request, "policy_blanks.html", TAB, context, status=400 if error else 200)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def policy_edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change the statements of a policy."""
    arn = auth_arn("policy", name)
    services.require(request.user, ("auth:ReadPolicy", arn), ("auth:UpdatePolicy", arn))
    policy = services.policy_find(name)
    if request.method == "POST":
        return _written(request, policy)
    try:
        draft = policy_draft.of_document(policy.document, as_json=request.GET.get("as") == "json")
    except Invalid:
        draft = policy_draft.Draft(True, name, pretty(policy.document), ())
    return _editor(request, draft, policy)


def _written(request: HttpRequest, policy: Policy | None) -> HttpResponse:
    """What was typed, as the pressed button wants it: shown otherwise, reviewed, or saved as it was reviewed."""
    draft, do = policy_draft.of_typed(request.POST), request.POST.get("do", "review")
    if do == "add":
        return _editor(request, draft, policy, more=True)
    if do == "json":
        return _editor(request, policy_draft.Draft(True, draft.name, draft.text, ()), policy)
    reading = _checked(draft, policy)
    if isinstance(reading, Wrong):
        return _editor(request, draft, policy, error=reading, status=400)
    if do == "form":
        return _editor(request, policy_draft.of_document(draft.document, as_json=False), policy)
    return _reviewed(request, draft, reading, policy, save=do == "save")


def _checked(draft: policy_draft.Draft, policy: Policy | None) -> Reading | Wrong:
    """The draft as it is understood; a name stays, and is nobody else's."""
    reading = draft.checked
    if isinstance(reading, Wrong) or (policy is not None and reading.name == policy.name):
        return reading
    if policy is not None:
        return Wrong(f"The name of {policy.name} can't be changed: create a new policy for another name", 0, "")
    if Policy.objects.filter(name=reading.name).exists():
        return Wrong(f"A policy {reading.name} exists already: choose another name, or edit that policy", 0, "")
    return reading


def _reviewed(
    request: HttpRequest, draft: policy_draft.Draft, reading: Reading, policy: Policy | None, *, save: bool
) -> HttpResponse:
    """Show what a draft would do; save it if just that was shown before."""
    arn = auth_arn("policy", reading.name)
    services.require(request.user, ("auth:UpdatePolicy" if policy else "auth:CreatePolicy", arn))
    review = policy_draft.review(draft, reading)
    if save and request.POST.get("seal") == review.seal:
        return _save(request, draft, policy)
    return _editor(request, draft, policy, review=review, changed=save)


def _save(request: HttpRequest, draft: policy_draft.Draft, policy: Policy | None) -> HttpResponse:
    document = draft.document
    verb = (
        partial(services.policy_update, policy=policy, statement=document["statement"])
        if policy
        else partial(services.policy_create, document=document)
    )
    try:
        verb(actor=request.user, reason=reason_of(request))
    except LakeMirrorError as error:
        wrong = Wrong(str(error), 0, "")
        return _editor(request, draft, policy, wrong=wrong, status=int(status_of(error) or 500))
    name = document["id"]
    messages.success(
        request,
        f"Saved {name}."
        if policy
        else f"Created {name}. Now attach it to a user or group, or create a user who has it.",
    )
    return redirect("policy", document["id"])


def _editor(
    request: HttpRequest,
    draft: policy_draft.Draft,
    policy: Policy | None,
    *,
    status: int = 200,
    more: bool = False,
    **context: Any,
) -> HttpResponse:
    review = context.get("review")
    seen = names_seen(review.impact, request.user) if review else set()
    empty = policy_draft.Row("allow", "", "")
    rows = (*draft.rows, empty) if more or not draft.rows else draft.rows
    shared = {"draft": draft, "policy": policy, "rows": rows, "seen": seen, "actions": actions()}
    return show(request, "policy_edit.html", TAB, shared | context, status=status)
