"""The replication API: merges that were held for a mirror, and heads that came without being asked for."""

from __future__ import annotations

from functools import partial
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from mirrors.api.mirrors import find_visible
from mirrors.models import HeldMerge
from mirrors.services.holds.sight import Regions, answer_of, complete_in, regions_told
from mirrors.transitions.held_merges import held_of
from web.openapi import answers
from web.paging import PAGE, newest_first
from web.schemas import page_answer, text_or_null, time_or_null
from web.serializers import rfc3339


class HeldMergeAnswer(serializers.Serializer):
    """One question of lakeFS, and what became of it."""

    id = serializers.IntegerField()
    branch = serializers.CharField()
    commit = serializers.CharField(help_text="the merge commit")
    merge_source = text_or_null()
    state = serializers.CharField(help_text=" or ".join(f"`{state}`" for state in HeldMerge.State.values))
    copies = serializers.IntegerField(help_text="so many regions were wanted")
    complete_in = serializers.ListField(child=serializers.CharField())
    detail = serializers.CharField(
        allow_blank=True, help_text="what was answered; empty for who may not see every mirror"
    )
    held_at = serializers.DateTimeField()
    ended_at = time_or_null()
    seen_at = time_or_null()


class HeldMerges(APIView):
    """Held merges of a mirror's source."""

    tag = "holds"

    @answers("List held merges", 200, page_answer(HeldMergeAnswer), query=PAGE)
    def get(self, request: Request, repository: str, mirror_id: str) -> Response:
        """A page of them, the last one first. Needs fs:ListRepositories on `*`, or fs:ReadRepository on the mirror."""
        mirror = find_visible(request, repository, mirror_id)
        told = regions_told(request.user, mirror)
        return Response(newest_first(request, held_of(mirror), partial(held_json, told=told)))


def held_json(held: HeldMerge, told: Regions) -> dict[str, Any]:
    """As the API gives it to who may be told of these regions."""
    return {
        "id": held.pk,
        "branch": held.branch,
        "commit": held.commit_id,
        "merge_source": held.merge_source or None,
        "state": held.state,
        "copies": held.copies,
        "complete_in": complete_in(held, told),
        "detail": answer_of(held, told),
        "held_at": rfc3339(held.held_at),
        "ended_at": rfc3339(held.ended_at),
        "seen_at": rfc3339(held.seen_at),
    }
