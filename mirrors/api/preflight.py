"""What would keep a mirror from working, and what our user needs for it: asked before it is made, and later."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import NotFound
from core.installations.replication_rights import Side
from core.mirroring.branch_selection import ALL
from db import clock
from installations.api import PoliciesAnswer, policies_json
from mirrors.api.mirrors import SOURCE_REGION, MirrorDetail, creation_arguments, find_mirror, source_region
from mirrors.api.serializers import MirrorCreation
from mirrors.models import Mirror
from mirrors.preflight.checks import preflight
from mirrors.preflight.needed_rights import BothSides, mirror_policies, planned_policies
from mirrors.preflight.questions import Plan
from rbac import services as rbac
from web.openapi import answers
from web.paging import one_of
from web.schemas import CheckAnswer, check_json
from web.serializers import rfc3339


class PreflightAnswer(serializers.Serializer):
    """Every check; `ok`: nothing failed, and what decides is known."""

    ok = serializers.BooleanField()
    checks = CheckAnswer(many=True)
    as_of = serializers.DateTimeField()


class MirrorPreflight(MirrorDetail):
    """POST checks a plan; the other verbs are those of a mirror that somebody named `preflight`."""

    tag = "preflight"

    @answers("Check a plan", 200, PreflightAnswer, body=MirrorCreation, query=[SOURCE_REGION], fails=[502, 503])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """200 with every check; nothing is stored. The body, and the rights, are those of creation."""
        given = creation_arguments(request, repository)
        settings = given.pop("settings")
        chosen = settings.get("selected", {})
        plan = Plan(
            **given,
            include=tuple(chosen.get("include", ALL)),
            exclude=tuple(chosen.get("exclude", ())),
            tags=settings.get("tags", False),
        )
        result = preflight(actor=request.user, plan=plan)
        checks = [check_json(check) for check in result.checks]
        return Response({"ok": result.ok, "checks": checks, "as_of": rfc3339(result.as_of)})


PLANNED = (
    SOURCE_REGION,
    OpenApiParameter("region", str, description="of a mirror that is to be made: where"),
    OpenApiParameter("storage_namespace", str, description="of a mirror that is to be made: its place"),
    OpenApiParameter("tags", str, enum=["true", "false"], description="of a mirror that is to be made: with tags"),
)


class MirrorPoliciesAnswer(serializers.Serializer):
    """What our user needs at both sides of a mirror; `planned`: it is not there yet."""

    mirror = serializers.CharField()
    planned = serializers.BooleanField()
    source = PoliciesAnswer()
    destination = PoliciesAnswer()
    as_of = serializers.DateTimeField()


class MirrorPolicies(APIView):
    """What our user needs for a mirror."""

    tag = "mirrors"

    @answers("Get the policies of a mirror", 200, MirrorPoliciesAnswer, query=PLANNED)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """Policies for lakeFS and for the store, at both sides, and no more than is needed. Of a mirror that is to be
        made, too: with its region and storage_namespace. Needs fs:ListRepositories on `*`."""
        rbac.require(request.user, ("fs:ListRepositories", "*"))
        plan = _plan(request, repository, mirror_id)
        sides = planned_policies(plan) if plan else mirror_policies(_there(repository, mirror_id))
        return Response(_policies_json(mirror_id, plan is not None, sides))


def _there(repository: str, mirror_id: str) -> Mirror:
    try:
        return find_mirror(repository, mirror_id)
    except NotFound as error:
        hint = "For one that is to be made, give its region and storage_namespace as parameters"
        raise NotFound(error.message, hint=hint) from error


def _plan(request: Request, repository: str, name: str) -> Plan | None:
    """What the parameters tell of a mirror that is to be made; None where they tell nothing of one."""
    given = request.query_params
    tags = one_of(request, "tags", ("true", "false")) == "true"
    place = {field: given.get(field, "") for field in ("region", "storage_namespace")}
    if not any(place.values()):
        return None
    return Plan(source_repository=repository, source_region=source_region(request), name=name, tags=tags, **place)


def _policies_json(mirror_id: str, planned: bool, sides: BothSides) -> dict[str, Any]:
    both = {side.value: policies_json(*sides[side]) for side in (Side.SOURCE, Side.DESTINATION)}
    return {"mirror": mirror_id, "planned": planned, **both, "as_of": rfc3339(clock.now())}
