"""The replication API: questions about all mirrors at once."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.mirroring.states import State
from db.labels import with_labels
from mirrors.api.commit_schemas import PlaceAnswer
from mirrors.api.commits import STATUS, state_of
from mirrors.api.schemas import MirrorAnswer
from mirrors.api.serializers import mirror_json
from mirrors.models import Mirror
from mirrors.models.querysets import MirrorQuerySet
from mirrors.services.rights import require_sight
from mirrors.status.mirror import MirrorStatus, mirror_statuses
from mirrors.status.readable_regions import RegionStatus, places_of
from web.labels import LABEL, wanted_labels
from web.openapi import answers
from web.paging import MIRRORS_PAGE, PAGE, a_page, mirrors_page_of, page_of
from web.schemas import page_answer, page_with
from web.serializers import rfc3339

BATCH = 200
"""So many mirrors are read at once while those in a state are looked for."""
WHICH = (
    STATUS,
    OpenApiParameter("region", str, description="only those in this region"),
    OpenApiParameter("source", str, description="only those of sources with this name"),
    LABEL,
)


class AllMirrors(APIView):
    """Every mirror, of whatever source."""

    tag = "everywhere"

    @answers("List all mirrors", 200, page_answer(MirrorAnswer), query=[*MIRRORS_PAGE, *WHICH])
    def get(self, request: Request) -> Response:
        """A page of mirrors by name. Needs fs:ListRepositories on `*`, or fs:ReadRepository on single mirrors."""
        require_sight(request.user)
        given = request.query_params
        exactly = {"region": given.get("region"), "source__name": given.get("source")}
        mirrors = Mirror.objects.visible_to(request.user).filter(
            **{name: value for name, value in exactly.items() if value}
        )
        mirrors = with_labels(mirrors, wanted_labels(given.getlist("label")))
        amount, after = mirrors_page_of(request)
        readings = _in_state(mirrors.select_related("source"), state_of(request), after, amount + 1)
        page, pagination = a_page(readings, amount, lambda reading: reading.mirror.name)
        return Response(pagination | {"results": [mirror_json(reading) for reading in page]})


class CommitRegions(APIView):
    """Which regions can read a commit."""

    tag = "everywhere"

    @answers(
        "List regions of a commit", 200, page_with(PlaceAnswer, commit=serializers.CharField()), query=PAGE, fails=[409]
    )
    def get(self, request: Request, commit: str) -> Response:
        """A page of places by region and repository. Needs fs:ListRepositories on `*`, or fs:ReadRepository on single
        mirrors."""
        require_sight(request.user)
        amount, after = page_of(request)
        sha, places = places_of(list(Mirror.objects.visible_to(request.user).select_related("source")), commit)
        page, pagination = a_page(
            [place for place in places if place.offset > after], amount, lambda place: place.offset
        )
        return Response({"commit": sha} | pagination | {"results": [place_json(place) for place in page]})


def place_json(place: RegionStatus) -> dict[str, Any]:
    """A repository, and whether the commit can be read there; null: nobody knows."""
    return {
        "region": place.region,
        "repository": place.repository,
        "role": place.role,
        "readable": place.readable.answer,
        "since": rfc3339(place.readable.since),
        "reason": place.readable.reason or None,
        "as_of": rfc3339(place.as_of),
    }


def _in_state(mirrors: MirrorQuerySet, state: State | None, after: str, amount: int) -> list[MirrorStatus]:
    """The first mirrors by name that are in a state. What that is comes from many rows: it is read, not asked for."""
    readings: list[MirrorStatus] = []
    size = amount if state is None else max(amount, BATCH)
    while True:
        batch = list(mirrors.filter(name__gt=after).order_by("name")[:size])
        readings += [reading for reading in mirror_statuses(batch) if state in (None, reading.state)]
        if len(readings) >= amount or len(batch) < size:
            return readings[:amount]
        after = batch[-1].name
