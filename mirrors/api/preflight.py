"""What is asked before a mirror is made: what would keep it from working, what our user needs for it, and what
replication will never send, for it was there before. They are told of a mirror that is there, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.bringing import ObjectReplication
from core.errors import NotFound
from core.installations.replication_rights import Side
from db import clock
from installations.api import PoliciesAnswer, policies_json
from mirrors.api.mirrors import SOURCE_REGION, MirrorDetail, creation_arguments, find_mirror, plan_of, source_region
from mirrors.api.serializers import MirrorCreation
from mirrors.models import Mirror
from mirrors.preflight.checks import Preflight, preflight
from mirrors.preflight.needed_rights import BothSides, mirror_policies, planned_policies
from mirrors.preflight.questions import Plan
from mirrors.preflight.standing import standing_checks
from mirrors.preflight.unreplicated import Route, count_unreplicated, manifest, route_of_mirror, route_of_plan
from mirrors.services.rights import require_operation_of, require_sight_of
from web.csv_export import FORMATS, TableView, lines_answer, wants_csv
from web.openapi import answers
from web.paging import one_of
from web.schemas import CheckAnswer, check_json
from web.serializers import rfc3339

FORMAT = OpenApiParameter(
    "format",
    str,
    enum=FORMATS,
    description="csv: a manifest of all of it for S3 Batch Replication, without a heading: bucket, key in URL "
    "encoding, version id",
)
VERSIONS = OpenApiParameter(
    "versions",
    str,
    enum=("true", "false"),
    description="false: the manifest has no version ids. S3 requires them where the bucket has versioning",
)


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
        plan = plan_of(creation_arguments(request, repository))
        return _told(preflight(actor=request.user, plan=plan, writing=True))


def _told(result: Preflight) -> Response:
    checks = [check_json(check) for check in result.checks]
    return Response({"ok": result.ok, "checks": checks, "as_of": rfc3339(result.as_of)})


class StandingChecks(APIView):
    """What the settings of a mirror that is there ask for."""

    tag = "preflight"

    @answers("Check the settings of a mirror", 200, PreflightAnswer)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """Checks of what may be switched on later: `source-hold-file` where the mirror holds merges, the right to list
        tags at both sides where it follows its source's garbage collection. Needs fs:OperateMirror on the source or
        the mirror."""
        require_operation_of(request.user, repository, mirror_id)
        return _told(standing_checks(find_mirror(repository, mirror_id)))


PLANNED = (
    SOURCE_REGION,
    OpenApiParameter("region", str, description="of a mirror to be created: its region"),
    OpenApiParameter("storage_namespace", str, description="of a mirror to be created: its storage namespace"),
    OpenApiParameter(
        "tags", str, enum=["true", "false"], description="of a mirror to be created: whether tags are mirrored"
    ),
    OpenApiParameter(
        "object_replication",
        str,
        enum=[choice.value for choice in ObjectReplication],
        description="of a mirror to be created: who copies its objects",
    ),
    OpenApiParameter(
        "follow_gc",
        str,
        enum=["true", "false"],
        description="true: with what it needs to follow its source's garbage collection, also of a managed mirror that "
        "does not yet",
    ),
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
        made, too: with its region and storage_namespace. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the
        mirror."""
        require_sight_of(request.user, mirror_id)
        plan, follows_gc = _plan(request, repository, mirror_id), _follows_gc(request)
        if plan:
            sides = planned_policies(plan)
        else:
            sides = mirror_policies(_there(repository, mirror_id), follows_gc=follows_gc)
        return Response(_policies_json(mirror_id, plan is not None, sides))


def _there(repository: str, mirror_id: str) -> Mirror:
    try:
        return find_mirror(repository, mirror_id)
    except NotFound as error:
        hint = "For a mirror to be created, give its region and storage_namespace as parameters"
        raise NotFound(error.message, hint=hint) from error


def _follows_gc(request: Request) -> bool:
    return one_of(request, "follow_gc", ("true", "false")) == "true"


def _plan(request: Request, repository: str, name: str) -> Plan | None:
    """What the parameters tell of a mirror that is to be made; None where they tell nothing of one."""
    given = request.query_params
    tags = one_of(request, "tags", ("true", "false")) == "true"
    replication = one_of(request, "object_replication", tuple(ObjectReplication))
    place = {field: given.get(field, "") for field in ("region", "storage_namespace")}
    if not any(place.values()):
        return None
    managed = replication == ObjectReplication.MANAGED
    origin = {"source_repository": repository, "source_region": source_region(request)}
    return Plan(**origin, name=name, tags=tags, managed=managed, follows_gc=_follows_gc(request), **place)


def _policies_json(mirror_id: str, planned: bool, sides: BothSides) -> dict[str, Any]:
    both = {side.value: policies_json(*sides[side]) for side in (Side.SOURCE, Side.DESTINATION)}
    return {"mirror": mirror_id, "planned": planned, **both, "as_of": rfc3339(clock.now())}


# --- what was never replicated ---------------------------------------------------------------------------------------


class UnreplicatedAnswer(serializers.Serializer):
    """So many objects of the source, with their bytes, that are not in the mirror's namespace, or have another size
    there. They may be on their way. With `at_least`, only the first `looked_at` of the source's were looked at."""

    as_of = serializers.DateTimeField()
    objects = serializers.IntegerField()
    bytes = serializers.IntegerField()
    looked_at = serializers.IntegerField()
    at_least = serializers.BooleanField()


class Unreplicated(TableView):
    """Of a mirror."""

    tag = "unreplicated"

    @answers("Count unreplicated objects", 200, UnreplicatedAnswer, query=[FORMAT, VERSIONS], fails=[502], csv=True)
    def get(self, request: Request, repository: str, mirror_id: str) -> HttpResponseBase:
        """Their number, as far as 20 s of listing both places told; or the manifest. Needs fs:OperateMirror on
        repository/{repository}."""
        require_operation_of(request.user, repository, mirror_id)
        form = _form(request)
        mirror = find_mirror(repository, mirror_id)
        return _answer(form, route_of_mirror(actor=request.user, mirror=mirror), mirror.name)


class PlannedUnreplicated(TableView, MirrorDetail):
    """Of a plan. To GET, PATCH and DELETE a mirror that is named `unreplicated` is here as anywhere."""

    tag = "unreplicated"

    @answers(
        "Count unreplicated objects of a plan",
        200,
        UnreplicatedAnswer,
        body=MirrorCreation,
        query=[SOURCE_REGION, FORMAT, VERSIONS],
        fails=[502],
        csv=True,
    )
    def post(self, request: Request, repository: str, mirror_id: str) -> HttpResponseBase:
        """The same of a mirror that could be made. Body and rights are those of creation; nothing is stored."""
        form = _form(request)
        given = creation_arguments(request, repository)
        route = route_of_plan(
            actor=request.user,
            repository=repository,
            source_region=given["source_region"],
            name=given["name"],
            region=given["region"],
            namespace=given["storage_namespace"],
        )
        return _answer(form, route, given["name"])


@dataclass(frozen=True, slots=True)
class _Form:
    csv: bool
    versions: bool


def _form(request: Request) -> _Form:
    """How the answer is asked for. Raises Invalid for what there is not."""
    return _Form(wants_csv(request), one_of(request, "versions", ("true", "false")) != "false")


def _answer(form: _Form, route: Route, name: str) -> HttpResponseBase:
    if form.csv:
        return lines_answer(f"{name}-manifest", manifest(route, versions=form.versions))
    found = count_unreplicated(route)
    told: dict[str, Any] = {"objects": found.objects, "bytes": found.bytes, "looked_at": found.looked}
    return Response({"as_of": rfc3339(clock.now()), **told, "at_least": not found.whole})
