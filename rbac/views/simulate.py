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
    question = {name: request.GET.get(name, "").strip() for name in ("user", "action", "arn")}
    question["user"] = question["user"] or request.user.username
    require_about(request.user, question["user"])
    lists_users = services.allowed(request.user, "auth:ListUsers", ALL)
    context: dict[str, Any] = {
        "question": question,
        "body": json.dumps(question, ensure_ascii=False),
        "lists_users": lists_users,
        "names": User.objects.values_list("username", flat=True)[:_NAMED] if lists_users else [],
        "actions": sorted(
            {need.action for area in permission_catalog.areas() for step in area.steps for need in step.needs}
        ),
    }
    answer, status = _answer(question)
    return show(request, "simulate.html", "simulate", context | answer, status=status)


def _answer(question: dict[str, str]) -> tuple[dict[str, Any], int]:
    """What the page shows, and its status."""
    try:
        user = services.user_find(question["user"])
    except NotFound as error:
        return {"error": error, "field": "user"}, 404
    context: dict[str, Any] = {"account": user, "holdings": effective(user)}
    if not question["action"] and not question["arn"]:
        return context, 200
    try:
        return context | {"answer": simulate(user, question["action"], question["arn"])}, 200
    except LakeMirrorError as error:
        return context | {"error": error, "field": error.field if isinstance(error, Invalid) else ""}, 400
