"""The pages of access keys: one's own, and those of others for who may see them. A secret is shown once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.access.policies import auth_arn
from core.errors import LakeMirrorError
from rbac import services
from rbac.key_secrets import IssuedKey
from rbac.models import AccessKey, User
from rbac.views.forms import KeyForm, OverlapForm
from rbac.views.parts import carry_out, reason_of, show, tabs_of
from web.forms import ServiceForm


@never_cache
@require_safe
def my_keys(request: HttpRequest) -> HttpResponse:
    """The keys of who asks."""
    services.require(request.user)
    return user_keys(request, request.user.username)


@never_cache
@require_safe
def user_keys(request: HttpRequest, name: str) -> HttpResponse:
    """A user's keys."""
    services.require(request.user, ("auth:ListCredentials", auth_arn("user", name)))
    return _show(request, services.user_find(name), KeyForm())


def _show(request: HttpRequest, user: User, form: ServiceForm, status: int = 200) -> HttpResponse:
    actions = {"create": "auth:CreateCredentials", "delete": "auth:DeleteCredentials"}
    may = {name: services.allowed(request.user, action, user.arn) for name, action in actions.items()}
    context = {"account": user, "keys": services.keys_of(user), "form": form, "overlap": OverlapForm(), "may": may}
    return show(request, "keys.html", _tab(request, user), context, status=status)


def _tab(request: HttpRequest, user: User) -> str:
    return "keys" if user.pk == request.user.pk else "users"


@require_POST
def key_create(request: HttpRequest, name: str) -> HttpResponse:
    """A new key; this answer is the only one that has its secret."""
    services.require(request.user, ("auth:CreateCredentials", auth_arn("user", name)))
    user, form = services.user_find(name), KeyForm(request.POST)
    if not form.is_valid():
        return _show(request, user, form, 400)
    create = partial(
        services.key_create,
        actor=request.user,
        user=user,
        description=form.cleaned_data["description"],
        expires_at=form.expires_at,
    )
    return _issued(request, user, create)


@require_POST
def key_rotate(request: HttpRequest, name: str, key: str) -> HttpResponse:
    """A new key in place of one that goes on for a while."""
    arn = auth_arn("user", name)
    services.require(request.user, ("auth:CreateCredentials", arn), ("auth:DeleteCredentials", arn))
    user, form = services.user_find(name), OverlapForm(request.POST)
    old = services.key_find(user, key)
    if not form.is_valid():
        return _show(request, user, KeyForm(), 400)
    rotate = partial(services.key_rotate, actor=request.user, key=old, overlap=form.lasting)
    return _issued(request, user, rotate, old)


def _issued(
    request: HttpRequest, user: User, make: Callable[[], IssuedKey], old: AccessKey | None = None
) -> HttpResponse:
    try:
        issued = make()
    except LakeMirrorError as error:
        form = KeyForm(request.POST if old is None else {"days": "90"})
        form.is_valid()
        form.refuse(error)
        return _show(request, user, form, 409)
    call = f"curl -u {issued.key.key_id}:SECRET {request.build_absolute_uri('/service/replication/v1/mirrors')}"
    context: dict[str, Any] = {"account": user, "issued": issued, "old_key": old, "call": call}
    answer = show(request, "key_shown.html", _tab(request, user), context)
    answer["Cache-Control"] = "no-store"
    return answer


@require_POST
def key_end(request: HttpRequest, name: str, key: str, forever: bool) -> HttpResponse:
    """Disable a key, or take it off the list as well."""
    services.require(request.user, ("auth:DeleteCredentials", auth_arn("user", name)))
    access_key = services.key_find(services.user_find(name), key)
    verb = services.key_delete if forever else services.key_disable
    message = f"Deleted {key}." if forever else f"Disabled {key}."
    end = partial(verb, actor=request.user, key=access_key, reason=reason_of(request))
    own = name == request.user.username
    return carry_out(request, end, message, *(("keys",) if own else ("user_keys", name)))


@require_safe
def access(request: HttpRequest) -> HttpResponse:
    """The first page of access that somebody may see."""
    services.require(request.user)
    return redirect(tabs_of(request.user)[0].address)
