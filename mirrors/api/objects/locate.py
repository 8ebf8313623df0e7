"""The replication API: where an object of a commit can be read now."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.policies import object_arn
from core.errors import Invalid
from core.locating import LEAST_SECONDS, MOST_SECONDS, USUAL_SECONDS, Located
from mirrors.api.mirrors import SOURCE_REGION, source_region
from mirrors.services.locate.locate import object_locate
from rbac import services as rbac
from web.openapi import answers
from web.paging import number_of
from web.serializers import rfc3339

ASKED = (
    OpenApiParameter("ref", str, required=True, description="a branch, a tag, or a commit's id or its beginning"),
    OpenApiParameter("path", str, required=True, description="of the object in the repository"),
    OpenApiParameter("prefer", str, description="the region that is taken if it has the object"),
    OpenApiParameter(
        "seconds",
        {"type": "integer", "minimum": LEAST_SECONDS, "maximum": MOST_SECONDS},
        description=f"how long the address is to be good for; {USUAL_SECONDS} unless told",
    ),
    OpenApiParameter("redirect", bool, description="`true`: 307 to the address, in place of 200"),
    SOURCE_REGION,
)
WHERE = OpenApiParameter(
    "Location", str, OpenApiParameter.HEADER, response=[307], description="the address, with `redirect=true`"
)


class TriedAnswer(serializers.Serializer):
    """A region that did not give the object."""

    region = serializers.CharField()
    why = serializers.CharField()


class LocatedAnswer(serializers.Serializer):
    """Where the object can be read."""

    url = serializers.CharField(help_text="whoever has it may read the object until it expires")
    expires_at = serializers.DateTimeField()
    region = serializers.CharField()
    address = serializers.CharField(help_text="the same as `s3://bucket/key`, for who has keys of that store")
    size = serializers.IntegerField()
    etag = serializers.CharField(allow_blank=True, help_text="as the commit names it")
    commit = serializers.CharField()
    fresh = serializers.BooleanField(
        help_text="false: the source could not be asked, and `commit` is where a mirror was last promoted to"
    )
    tried = TriedAnswer(many=True)


class Locate(APIView):
    """Where an object can be read."""

    tag = "objects"

    @answers("Locate an object", 200, LocatedAnswer, query=[*ASKED, WHERE], fails=[409, 502], also=(307, None))
    def get(self, request: Request, repository: str) -> Response:
        """An address by which the object can be read for a while, in a region that has it now. Needs fs:ReadObject on
        repository/{repository}/object/{path}; of an imported object also fs:ImportFromStorage on namespace/{its own
        address}."""
        given = request.query_params
        path = given.get("path", "")
        rbac.require(request.user, ("fs:ReadObject", object_arn(repository, path)))
        redirected = _redirected(given.get("redirect", ""))
        located = object_locate(
            actor=request.user,
            repository=repository,
            source_region=source_region(request),
            ref=given.get("ref", ""),
            path=path,
            prefer=given.get("prefer", ""),
            seconds=number_of(given["seconds"], "seconds") if given.get("seconds") else USUAL_SECONDS,
        )
        headers = {"Cache-Control": "no-store"}
        if redirected:
            return Response(status=307, headers=headers | {"Location": located.url})
        return Response(located_json(located), headers=headers)


def _redirected(given: str) -> bool:
    if given not in ("", "true", "false"):
        raise Invalid("redirect is true or false", field="redirect")
    return given == "true"


def located_json(located: Located) -> dict[str, Any]:
    """The answer, which holds the address: for the caller alone."""
    return {
        "url": located.url,
        "expires_at": rfc3339(located.expires_at),
        "region": located.region,
        "address": located.address,
        "size": located.size,
        "etag": located.etag,
        "commit": located.commit,
        "fresh": located.fresh,
        "tried": [{"region": one.region, "why": one.why} for one in located.tried],
    }
