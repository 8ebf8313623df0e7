"""The replication API: what a mirror would cost."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.mirroring.check_cost import Cost
from db import clock
from mirrors.api.mirrors import SOURCE_REGION, MirrorDetail, creation_arguments
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
        creation = mirrors.check_creation(actor=request.user, **creation_arguments(request, repository))
        return Response(_preview_json(preview_of(creation)))


def _preview_json(preview: Preview) -> dict[str, Any]:
    """As the API tells of it."""
    return {
        "as_of": rfc3339(clock.now()),
        "branches": {"all": preview.branches, "selected": preview.selected, "at_least": not preview.all_listed},
        "heads": {"all": preview.heads, "read": preview.read},
        "commits": {"number": preview.commits, "at_least": preview.commits_more},
        "objects": preview.entries,
        "bytes": preview.bytes,
        "bytes_estimated": preview.bytes_estimated,
        "ranges": preview.ranges,
        "metaranges": preview.metaranges,
        "metadata_bytes": preview.metadata_bytes,
        "at_least": preview.at_least,
        "first_check": {"at_best": _cost_json(preview.best), "at_worst": _cost_json(preview.worst)},
        "not_counted": [
            *NOT_COUNTED,
            "the records of all commits, with one request each to the destination's lakeFS",
        ],
        "warnings": list(preview.warnings),
    }


def _cost_json(cost: Cost) -> dict[str, Any]:
    return {"get": cost.gets, "list": cost.lists, "head": cost.heads, "seconds": cost.seconds}
