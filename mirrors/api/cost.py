"""The replication API: what a mirror would cost."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.mirroring.check_cost import Cost
from db import clock
from mirrors.api.mirrors import SOURCE_REGION, MirrorDetail, creation_asked
from mirrors.api.serializers import MirrorCreation
from mirrors.preflight.cost import NOT_COUNTED, Preview, preview_of
from mirrors.services import mirrors
from web.openapi import answers
from web.schemas import count_or_null, many_texts, number_or_null
from web.serializers import rfc3339


class CostAnswer(serializers.Serializer):
    """Requests to the destination's store by their kind; seconds are null where nobody can tell."""

    get = serializers.IntegerField()
    list = serializers.IntegerField()
    head = serializers.IntegerField()
    seconds = number_or_null()


class BranchesPreviewAnswer(serializers.Serializer):
    """How many branches there are, more with `at_least`."""

    all = serializers.IntegerField()
    selected = serializers.IntegerField()
    at_least = serializers.BooleanField()


class HeadsPreviewAnswer(serializers.Serializer):
    """How many commits the selected branches point to, and how many of these were read."""

    all = serializers.IntegerField()
    read = serializers.IntegerField()


class CommitsPreviewAnswer(serializers.Serializer):
    """How many commits these heads lead to, or more."""

    number = serializers.IntegerField()
    at_least = serializers.BooleanField()


class FirstCheckAnswer(serializers.Serializer):
    """What the first check takes if objects lie close together in the store, and if each lies by itself."""

    at_best = CostAnswer()
    at_worst = CostAnswer()


class PreviewAnswer(serializers.Serializer):
    """What a mirror would begin with. With `at_least`, the numbers are not of all heads."""

    as_of = serializers.DateTimeField()
    branches = BranchesPreviewAnswer()
    heads = HeadsPreviewAnswer()
    commits = CommitsPreviewAnswer()
    objects = serializers.IntegerField()
    bytes = count_or_null()
    bytes_estimated = serializers.BooleanField()
    ranges = serializers.IntegerField()
    metaranges = serializers.IntegerField()
    metadata_bytes = serializers.IntegerField()
    at_least = serializers.BooleanField()
    first_check = FirstCheckAnswer()
    not_counted = many_texts()
    warnings = many_texts()


class MirrorPreview(MirrorDetail):
    """What a mirror would cost. To GET, PATCH and DELETE a mirror that is named `preview` is here as anywhere."""

    tag = "preview"

    @answers("Preview a mirror", 200, PreviewAnswer, body=MirrorCreation, query=[SOURCE_REGION], fails=[502, 503])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """The body of creation; needs what creation needs, and is refused as that is. Nothing is stored."""
        found = mirrors.check_creation(actor=request.user, **creation_asked(request, repository))
        return Response(_preview_json(preview_of(found)))


def _preview_json(found: Preview) -> dict[str, Any]:
    """As the API tells of it."""
    return {
        "as_of": rfc3339(clock.now()),
        "branches": {"all": found.branches, "selected": found.selected, "at_least": not found.all_listed},
        "heads": {"all": found.heads, "read": found.read},
        "commits": {"number": found.commits, "at_least": found.commits_more},
        "objects": found.entries,
        "bytes": found.bytes,
        "bytes_estimated": found.bytes_estimated,
        "ranges": found.ranges,
        "metaranges": found.metaranges,
        "metadata_bytes": found.metadata_bytes,
        "at_least": found.at_least,
        "first_check": {"at_best": _cost_json(found.best), "at_worst": _cost_json(found.worst)},
        "not_counted": [
            *NOT_COUNTED,
            "the records of all commits, one request each to the destination's lakeFS",
        ],
        "warnings": list(found.warnings),
    }


def _cost_json(cost: Cost) -> dict[str, Any]:
    return {"get": cost.gets, "list": cost.lists, "head": cost.heads, "seconds": cost.seconds}
