"""The page that answers: may this user do that, and why?"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from core.access.policies import ALL
from core.errors import Invalid, LakeMirrorError, NotFound
from rbac import permission_catalog, services
from rbac.api.permissions import require_about
from rbac.models import User
from rbac.services.effective_permissions import effective, simulate
from rbac.views.parts import show

_NAMED = 200


@never_cache
@require_safe
def simulate_page(request: HttpRequest) -> HttpResponse:
    """A question and its answer, and all that applies to the user. Everybody may ask about themselves."""
    services.require(request.user)
    asked = {name: request.GET.get(name, "").strip() for name in ("user", "action", "arn")}
    asked["user"] = asked["user"] or request.user.username
    require_about(request.user, asked["user"])
    lists_users = services.allowed(request.user, "auth:ListUsers", ALL)
    context: dict[str, Any] = {
        "asked": asked,
        "question": json.dumps(asked, ensure_ascii=False),
        "lists_users": lists_users,
        "names": User.objects.values_list("username", flat=True)[:_NAMED] if lists_users else [],
        "actions": sorted(
            {need.action for area in permission_catalog.areas() for step in area.steps for need in step.needs}
        ),
    }
    found, status = _answer(asked)
    return show(request, "simulate.html", "simulate", context | found, status=status)


def _answer(asked: dict[str, str]) -> tuple[dict[str, Any], int]:
    """What the page shows, and its status."""
    try:
        user = services.user_find(asked["user"])
    except NotFound as error:
        return {"error": error, "field": "user"}, 404
    told: dict[str, Any] = {"one": user, "held": effective(user)}
    if not asked["action"] and not asked["arn"]:
        return told, 200
    try:
        return told | {"answer": simulate(user, asked["action"], asked["arn"])}, 200
    except LakeMirrorError as error:
        return told | {"error": error, "field": error.field if isinstance(error, Invalid) else ""}, 400
