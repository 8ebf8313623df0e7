"""The replication API: waivers."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.policies import repository_arn
from mirrors.api.mirrors import find_mirror, find_visible
from mirrors.models import Waiver
from mirrors.services.waivers import MOST_COMMITS, find_waiver, waiver_give, waiver_withdraw
from rbac import services as rbac
from web.openapi import answers
from web.paging import PAGE, newest_first
from web.schemas import page_answer, text_or_null
from web.serializers import Body, rfc3339


class WaiverGiven(Body):
    """The body of POST: which commits, or which objects by their addresses, and why."""

    commits = serializers.ListField(
        child=serializers.RegexField(r"^[0-9a-f]{64}\Z"), allow_empty=False, max_length=MOST_COMMITS, required=False
    )
    objects = serializers.ListField(
        child=serializers.CharField(max_length=4096, trim_whitespace=False),
        allow_empty=False,
        max_length=MOST_COMMITS,
        required=False,
        help_text="addresses, as blockers have them: accepted as missing for all commits that hold them, now or later",
    )
    reason = serializers.CharField(max_length=1000)


class WaivedObjectAnswer(serializers.Serializer):
    """An object that is accepted as missing, for all commits that hold it."""

    path = text_or_null()
    address = serializers.CharField()


class WaiverAnswer(serializers.Serializer):
    """A waiver with the commits, or the objects, that it is about."""

    id = serializers.IntegerField()
    commits = serializers.ListField(child=serializers.CharField())
    objects = WaivedObjectAnswer(many=True)
    reason = serializers.CharField()
    given_by = serializers.CharField()
    given_at = serializers.DateTimeField()


class Waivers(APIView):
    """What was waived at a mirror."""

    tag = "waivers"

    @answers("List waivers", 200, page_answer(WaiverAnswer), query=PAGE)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """A page of waivers, the last one first. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the
        mirror."""
        return Response(newest_first(request, find_visible(request, repository, mirror_id).waivers, waiver_json))

    @answers("Give a waiver", 201, WaiverAnswer, body=WaiverGiven)
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """Accept that commits are unreadable, or that objects are missing for all commits that hold them, now and
        later. 201 with the waiver. Needs fs:MirrorRepository on the source."""
        rbac.require(request.user, ("fs:MirrorRepository", repository_arn(repository)))
        body = WaiverGiven(data=request.data)
        body.is_valid(raise_exception=True)
        mirror = find_mirror(repository, mirror_id)
        waiver = waiver_give(actor=request.user, mirror=mirror, **body.validated_data)
        return Response(waiver_json(waiver), status=201)


class WaiverDetail(APIView):
    """One waiver: see it, withdraw it."""

    tag = "waivers"

    @answers("Get a waiver", 200, WaiverAnswer)
    def get(self, request: Request, repository: str, mirror_id: str, waiver: int) -> Response:
        """The waiver. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        return Response(waiver_json(find_waiver(find_visible(request, repository, mirror_id), waiver)))

    @answers("Withdraw a waiver", 204)
    def delete(self, request: Request, repository: str, mirror_id: str, waiver: int) -> Response:
        """Withdraw it; no branch is moved back. Needs fs:MirrorRepository on the source."""
        rbac.require(request.user, ("fs:MirrorRepository", repository_arn(repository)))
        waiver_withdraw(actor=request.user, waiver=find_waiver(find_mirror(repository, mirror_id), waiver))
        return Response(status=204)


def waiver_json(waiver: Waiver) -> dict[str, Any]:
    """A waiver with the commits, or the objects, that it is about."""
    objects = waiver.objects_waived.order_by("pk")
    return {
        "id": waiver.pk,
        "commits": list(waiver.commits.order_by("commit_id").values_list("commit__sha", flat=True)),
        "objects": [{"path": one.path or None, "address": one.address} for one in objects],
        "reason": waiver.reason,
        "given_by": waiver.given_by,
        "given_at": rfc3339(waiver.given_at),
    }
