"""The pages of users: the list, one user with all that they may do, and what is done to them."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access.policies import ALL, auth_arn
from core.errors import LakeMirrorError
from rbac import services
from rbac.models import Group, Policy, User
from rbac.services.effective_permissions import effective
from rbac.views.forms import ProfileForm, UserForm
from rbac.views.parts import by_name, carry_out, reason_of, show, typed

TAB = "users"
CHOICES = 500
"""So many groups or policies can be chosen from; there are rarely more than some dozen."""


@never_cache
@require_safe
def user_list(request: HttpRequest) -> HttpResponse:
    """Everybody, by name."""
    services.require(request.user, ("auth:ListUsers", ALL))
    page = by_name(request, User.objects.prefetch_related("rbac_groups"), "username")
    may_create = services.allowed(request.user, "auth:CreateUser", auth_arn("user", ALL))
    return show(request, "users.html", TAB, {"page": page, "may_create": may_create})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def user_new(request: HttpRequest) -> HttpResponse:
    """The form of a new user, with the groups that they are to be in, and with the policy that `policy` names."""
    services.require(request.user, ("auth:ListUsers", ALL))
    data = request.POST if request.method == "POST" else None
    form = UserForm(data, groups=_groups_to_give(request), policy=request.GET.get("policy", ""))
    if not (form.is_bound and form.is_valid()):
        return show(request, "user_new.html", TAB, {"form": form}, status=400 if form.is_bound else 200)
    given = form.cleaned_data
    groups, policy, arn = given.pop("groups", []), given.pop("policy"), auth_arn("user", given["username"])
    needs = [("auth:AddGroupMember", auth_arn("group", name)) for name in groups]
    needs += [("auth:AttachPolicy", arn)] if policy else []
    services.require(request.user, ("auth:CreateUser", arn), *needs)
    try:
        user = _create(request, given, groups, policy)
    except LakeMirrorError as error:
        form.refuse(error)
        return show(request, "user_new.html", TAB, {"form": form}, status=400)
    messages.success(request, f"Created user {user.username}. Create an access key for programs that act for them.")
    return redirect("user", user.username)


def _groups_to_give(request: HttpRequest) -> list[str]:
    names = Group.objects.order_by("name").values_list("name", flat=True)[:CHOICES]
    return [name for name in names if services.allowed(request.user, "auth:AddGroupMember", auth_arn("group", name))]


def may_create_holders(request: HttpRequest) -> bool:
    """Whether the reader may create users and attach policies to them: to all of them, for they have no names yet."""
    anybody = auth_arn("user", ALL)
    needs = (("auth:ListUsers", ALL), ("auth:CreateUser", anybody), ("auth:AttachPolicy", anybody))
    return all(services.allowed(request.user, *need) for need in needs)


@transaction.atomic
def _create(request: HttpRequest, given: dict[str, Any], groups: list[str], policy: str) -> User:
    user = services.user_create(actor=request.user, **given)
    if policy:
        services.policy_attach(actor=request.user, policy=services.policy_find(policy), user=user)
    for name in groups:
        services.group_add(actor=request.user, group=services.group_find(name), user=user)
    return user


@never_cache
@require_safe
def user_detail(request: HttpRequest, name: str) -> HttpResponse:
    """One user: groups, policies, what they may do, keys."""
    services.require(request.user, ("auth:ReadUser", auth_arn("user", name)))
    user = services.user_find(name)
    groups, policies = list(services.groups_of(user)), list(services.policies_held(user=user))
    verbs = {"attach": "AttachPolicy", "detach": "DetachPolicy", "update": "UpdateUser", "delete": "DeleteUser"}
    context = {
        "account": user,
        "groups": groups,
        "policies": policies,
        "holdings": effective(user),
        "keys": services.keys_of(user) if services.allowed(request.user, "auth:ListCredentials", user.arn) else None,
        "other_groups": [name for name in _groups_to_give(request) if name not in {group.name for group in groups}],
        "other_policies": other_policies(policies),
        "may": {key: services.allowed(request.user, f"auth:{verb}", user.arn) for key, verb in verbs.items()},
    }
    return show(request, "user.html", TAB, context)


def other_policies(held: list[Policy]) -> list[str]:
    """Names of the policies that a user or group does not have."""
    others = Policy.objects.exclude(pk__in=[policy.pk for policy in held]).order_by("name")
    return list(others.values_list("name", flat=True)[:CHOICES])


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def user_edit(request: HttpRequest, name: str) -> HttpResponse:
    """Change full name and e-mail."""
    services.require(request.user, ("auth:UpdateUser", auth_arn("user", name)))
    user = services.user_find(name)
    initial = {"friendly_name": user.friendly_name, "email": user.email}
    form = ProfileForm(request.POST if request.method == "POST" else None, initial=initial)
    if not (form.is_bound and form.is_valid()):
        context = {"account": user, "form": form}
        return show(request, "user_edit.html", TAB, context, status=400 if form.is_bound else 200)
    change = partial(services.user_edit, actor=request.user, user=user, **form.cleaned_data)
    return carry_out(request, change, f"Saved {name}.", "user", name)


@require_POST
def user_active(request: HttpRequest, name: str, active: bool) -> HttpResponse:
    """Disable a user with all keys and sessions, or enable them."""
    services.require(request.user, ("auth:UpdateUser", auth_arn("user", name)))
    user = services.user_find(name)
    verb = partial(services.user_set_active, actor=request.user, user=user, active=active)
    message = f"Enabled {name}." if active else f"Disabled {name}: their sessions and access keys no longer work."
    return carry_out(request, verb, message, "user", name)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def user_delete(request: HttpRequest, name: str) -> HttpResponse:
    """Say what goes and what stays, then delete."""
    services.require(request.user, ("auth:DeleteUser", auth_arn("user", name)))
    user = services.user_find(name)
    if request.method != "POST":
        return show(request, "user_delete.html", TAB, {"account": user, "keys": services.keys_of(user)})
    try:
        services.user_delete(actor=request.user, user=user, reason=reason_of(request))
    except LakeMirrorError as error:
        messages.error(request, f"Not deleted: {error}.")
        return redirect("user", name)
    messages.success(request, f"Deleted {name}.")
    return redirect("users")


# --- what they have ---------------------------------------------------------------------------------------------------


@require_POST
def user_group(request: HttpRequest, name: str) -> HttpResponse:
    """Add a user to a group, or remove them."""
    out = request.POST.get("out") == "1"
    group_name = typed(request, "group")
    action = "auth:RemoveGroupMember" if out else "auth:AddGroupMember"
    services.require(request.user, (action, auth_arn("group", group_name)))
    group, user = services.group_find(group_name), services.user_find(name)
    verb = services.group_remove if out else services.group_add
    message = f"Removed {name} from {group.name}." if out else f"Added {name} to {group.name}."
    return carry_out(
        request,
        partial(verb, actor=request.user, group=group, user=user),
        message,
        *(("group", group.name) if request.POST.get("from") == "group" else ("user", name)),
    )


@require_POST
def user_policy(request: HttpRequest, name: str) -> HttpResponse:
    """Attach a policy to a user, or detach it."""
    services.require(request.user, (policy_action(request), auth_arn("user", name)))
    return policy_moved(request, "user", name, user=services.user_find(name))


def policy_action(request: HttpRequest) -> str:
    """The right that a click on a policy needs."""
    return "auth:DetachPolicy" if request.POST.get("out") == "1" else "auth:AttachPolicy"


def policy_moved(request: HttpRequest, address: str, name: str, **holder: Any) -> HttpResponse:
    """Attach or detach a policy, and go back to who has it or had it."""
    out = request.POST.get("out") == "1"
    policy = services.policy_find(typed(request, "policy"))
    verb = services.policy_detach if out else services.policy_attach
    message = f"Detached {policy.name} from {name}." if out else f"Attached {policy.name} to {name}."
    move = partial(verb, actor=request.user, policy=policy, **holder)
    return carry_out(request, move, message, address, name)
