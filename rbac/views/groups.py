"""The pages of groups: the list, one group with its members and policies."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access.policies import ALL, auth_arn
from core.errors import LakeMirrorError
from rbac import services
from rbac.models import Group
from rbac.views.forms import GroupForm
from rbac.views.parts import by_name, reason_of, show, typed
from rbac.views.users import other_policies, policy_action, policy_moved

TAB = "groups"


@never_cache
@require_safe
def group_list(request: HttpRequest) -> HttpResponse:
    """All groups, by name."""
    services.require(request.user, ("auth:ListGroups", ALL))
    counted = Group.objects.annotate(
        people=Count("memberships", distinct=True), policies=Count("attachments", distinct=True)
    )
    may_create = services.allowed(request.user, "auth:CreateGroup", auth_arn("group", ALL))
    return show(request, "groups.html", TAB, {"page": by_name(request, counted, "name"), "may_create": may_create})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def group_new(request: HttpRequest) -> HttpResponse:
    """The form of a new group."""
    services.require(request.user, ("auth:ListGroups", ALL))
    form = GroupForm(request.POST if request.method == "POST" else None)
    if not (form.is_bound and form.is_valid()):
        return show(request, "group_new.html", TAB, {"form": form}, status=400 if form.is_bound else 200)
    services.require(request.user, ("auth:CreateGroup", auth_arn("group", form.cleaned_data["name"])))
    try:
        group = services.group_create(actor=request.user, **form.cleaned_data)
    except LakeMirrorError as error:
        form.refuse(error)
        return show(request, "group_new.html", TAB, {"form": form}, status=400)
    messages.success(request, f"Created group {group.name}. Attach policies, then add members.")
    return redirect("group", group.name)


@never_cache
@require_safe
def group_detail(request: HttpRequest, name: str) -> HttpResponse:
    """One group: members and policies."""
    services.require(request.user, ("auth:ReadGroup", auth_arn("group", name)))
    group = services.group_find(name)
    policies = list(services.policies_held(group=group))
    verbs = {
        "attach": "AttachPolicy",
        "detach": "DetachPolicy",
        "add": "AddGroupMember",
        "remove": "RemoveGroupMember",
        "delete": "DeleteGroup",
    }
    context = {
        "group": group,
        "policies": policies,
        "members": by_name(request, services.members_of(group), "username"),
        "people": services.members_of(group).count(),
        "other_policies": other_policies(policies),
        "may": {key: services.allowed(request.user, f"auth:{verb}", group.arn) for key, verb in verbs.items()},
    }
    return show(request, "group.html", TAB, context)


@require_POST
def group_add(request: HttpRequest, name: str) -> HttpResponse:
    """Put the user who was typed into a group."""
    services.require(request.user, ("auth:AddGroupMember", auth_arn("group", name)))
    group, username = services.group_find(name), typed(request, "user")
    try:
        user = services.user_find(username)
        services.group_add(actor=request.user, group=group, user=user)
        messages.success(request, f"Added {username} to {name}.")
    except LakeMirrorError as error:
        messages.error(request, f"Nothing was changed: {error}.")
    return redirect("group", name)


@require_POST
def group_policy(request: HttpRequest, name: str) -> HttpResponse:
    """Give a policy to a group, or take it."""
    services.require(request.user, (policy_action(request), auth_arn("group", name)))
    return policy_moved(request, "group", name, group=services.group_find(name))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def group_delete(request: HttpRequest, name: str) -> HttpResponse:
    """Say what goes, then delete."""
    services.require(request.user, ("auth:DeleteGroup", auth_arn("group", name)))
    group = services.group_find(name)
    if request.method != "POST":
        context = {
            "group": group,
            "people": services.members_of(group).count(),
            "policies": services.policies_held(group=group),
        }
        return show(request, "group_delete.html", TAB, context)
    try:
        services.group_delete(actor=request.user, group=group, reason=reason_of(request))
    except LakeMirrorError as error:
        messages.error(request, f"Nothing was changed: {error}.")
        return redirect("group", name)
    messages.success(request, f"Deleted {name}.")
    return redirect("groups")
