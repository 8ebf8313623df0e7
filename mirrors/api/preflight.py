"""What is asked before a mirror is made: what would keep it from working, and what replication will never send, for it
was there before. The latter is told of a mirror that is there, too."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.access.policies import repository_arn
from core.mirroring.branch_selection import ALL
from db import clock
from mirrors.api.mirrors import SOURCE_REGION, MirrorDetail, creation_arguments, find_mirror
from mirrors.api.serializers import MirrorCreation
from mirrors.preflight.checks import preflight
from mirrors.preflight.questions import Plan
from mirrors.preflight.unreplicated import Route, count_unreplicated, manifest, route_of_mirror, route_of_plan
from rbac import services as rbac
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
    description="false: the manifest has no version ids. S3 asks for them where the bucket has versions",
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
        rbac.require(request.user, ("fs:OperateMirror", repository_arn(repository)))
        mirror = find_mirror(repository, mirror_id)
        return _answer(request, route_of_mirror(actor=request.user, mirror=mirror), mirror.name)


class PlannedUnreplicated(TableView, MirrorDetail):
    """Of a plan. To GET, PATCH and DELETE a mirror that is named `unreplicated` is here as anywhere."""

    tag = "unreplicated"

    @answers(
        "Count what a plan lacks",
        200,
        UnreplicatedAnswer,
        body=MirrorCreation,
        query=[SOURCE_REGION, FORMAT, VERSIONS],
        fails=[502],
        csv=True,
    )
    def post(self, request: Request, repository: str, mirror_id: str) -> HttpResponseBase:
        """The same of a mirror that could be made. Body and rights are those of creation; nothing is stored."""
        given = creation_arguments(request, repository)
        route = route_of_plan(
            actor=request.user,
            repository=repository,
            source_region=given["source_region"],
            name=given["name"],
            region=given["region"],
            namespace=given["storage_namespace"],
        )
        return _answer(request, route, given["name"])


def _answer(request: Request, route: Route, name: str) -> HttpResponseBase:
    versions = one_of(request, "versions", ("true", "false")) != "false"
    if wants_csv(request):
        return lines_answer(f"{name}-manifest", manifest(route, versions=versions))
    found = count_unreplicated(route)
    told: dict[str, Any] = {"objects": found.objects, "bytes": found.bytes, "looked_at": found.looked}
    return Response({"as_of": rfc3339(clock.now()), **told, "at_least": not found.whole})
