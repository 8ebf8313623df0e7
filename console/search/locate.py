"""Where can I read this? The box on the search page, and its answer: an address in a region that has the object now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from core.access.policies import object_arn
from core.errors import Invalid, LakeMirrorError
from core.locating import LONGEST_PATH
from db import clock
from mirrors.models import Mirror, Repository
from mirrors.services.locate.locate import object_locate
from mirrors.views.tabs import may_see
from rbac import services as rbac
from web.errors import field_of, status_of

MOST_SOURCES = 200
"""So many are offered; any other can be typed."""


def question(request: HttpRequest) -> dict[str, Any]:
    """What the box is drawn with: the sources that the user sees, and what was asked."""
    given = {name: request.POST.get(name, "").strip() for name in ("repository", "ref", "prefer")}
    given["path"] = request.POST.get("path", "")
    return {"asked": given, "sources": _sources(request), "longest_path": LONGEST_PATH}


def _sources(request: HttpRequest) -> QuerySet[Repository]:
    visible = Mirror.objects.visible_to(request.user).order_by().values("source")
    return Repository.objects.filter(pk__in=visible).order_by("name", "region")[:MOST_SOURCES]


@never_cache
@require_POST
@may_see
def locate(request: HttpRequest) -> HttpResponse:
    """Ask for it. By POST: what answers is an address that may be used by whoever has it, and that is written down."""
    context = {"section": "search", "now": clock.now(), **question(request)}
    asked = context["asked"]
    region, _, name = asked["repository"].rpartition("/")
    rbac.require(request.user, ("fs:ReadObject", object_arn(name, asked["path"])))
    try:
        context["located"] = _located(request, region, name, asked)
    except LakeMirrorError as error:
        context |= {"refused": str(error), "wrong": field_of(error)}
        return render(request, "search/search.html", context, status=int(status_of(error) or 500))
    return render(request, "search/search.html", context)


def _located(request: HttpRequest, region: str, name: str, asked: Mapping[str, str]) -> Any:
    if not region:
        raise Invalid("choose a repository", field="repository")
    return object_locate(
        actor=request.user,
        repository=name,
        source_region=region,
        ref=asked["ref"],
        path=asked["path"],
        prefer=asked["prefer"],
    )
