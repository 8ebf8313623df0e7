"""The replication API: what is missing or wrong at a mirror."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import Invalid
from mirrors.api import find_mirror
from mirrors.as_csv import TableView, csv_answer, wants_csv
from mirrors.backlog import blockers_of, blockers_retry, by_prefix, by_reason, in_chunks
from mirrors.lacking import is_cut_short
from mirrors.models import Blocker, Mirror
from mirrors.paging import a_page, by_number, number_of, one_of, page_of
from mirrors.serializers import rfc3339
from mirrors.services import repository_arn
from rbac import services as rbac

MOST_IDS = 1000
COLUMNS = (
    "id",
    "kind",
    "path",
    "address",
    "size",
    "etag",
    "reason",
    "detail",
    "gone_at_source",
    "damage",
    "holder_kind",
    "holder",
    "first_seen",
    "attempts",
    "look_at",
)
_HOLDERS = {"record": "commit", "metarange": "metarange", "range": "range", "object": "range"}


class Blockers(TableView):
    """Every thing that is missing or wrong at a mirror."""

    def get(self, request: Request, repository: str, mirror_id: str) -> HttpResponseBase:
        """A page of them, the longest known first; groups; or all as CSV. Needs fs:ListRepositories on `*`."""
        rbac.require(request.user, ("fs:ListRepositories", "*"))
        mirror = find_mirror(repository, mirror_id)
        given = request.query_params
        named = {name: given.get(name, "") for name in ("commit", "branch", "reason", "prefix")}
        rows = blockers_of(mirror, kind=one_of(request, "kind", Blocker.Kind.values), **named)
        group_by = one_of(request, "group_by", ("reason", "prefix"))
        if wants_csv(request):
            if group_by:
                raise Invalid("groups are not given as CSV", field="group_by")
            return csv_answer(f"{mirror.name}-blockers", COLUMNS, map(blocker_json, in_chunks(rows)))
        if group_by:
            groups = by_reason(rows) if group_by == "reason" else by_prefix(rows, named["prefix"])
            return Response(_groups(request, groups, group_by) | _told(mirror))
        return Response(by_number(request, rows, blocker_json, "pk", newest=False) | _told(mirror))


class BlockersRetried(serializers.Serializer):
    """The body of POST: which ones, by id or by reason; neither: all."""

    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1), allow_empty=False, max_length=MOST_IDS
    )
    reason = serializers.CharField(max_length=32)

    def __init__(self, **given: Any) -> None:
        super().__init__(partial=True, **given)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(self.initial_data) - set(self.fields))
        if unknown:
            raise serializers.ValidationError({unknown[0]: f"is not a field here (known: {', '.join(self.fields)})"})
        if len(attrs) > 1:
            raise serializers.ValidationError({"ids": "give ids or a reason, not both"})
        return attrs


class BlockersRetry(APIView):
    """Look for what is missing now, not when its turn comes."""

    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """202 with how many. Needs fs:MirrorRepository on repository/{repository}."""
        rbac.require(request.user, ("fs:MirrorRepository", repository_arn(repository)))
        body = BlockersRetried(data=request.data)
        body.is_valid(raise_exception=True)
        mirror = find_mirror(repository, mirror_id)
        number = blockers_retry(actor=request.user, mirror=mirror, request=request, **body.validated_data)
        return Response({"message": f"{number} of what is missing or wrong is looked for now", "blockers": number}, 202)


def blocker_json(row: Blocker) -> dict[str, Any]:
    """One thing that is missing or wrong; `holder` is what needs it: a commit, a metarange or a range."""
    return {
        "id": row.pk,
        "kind": row.kind,
        "path": row.path or None,
        "address": row.address,
        "size": row.size,
        "etag": row.etag or None,
        "reason": row.reason,
        "detail": row.detail,
        "gone_at_source": row.gone_at_source,
        "damage": row.damage,
        "holder_kind": _HOLDERS.get(row.kind),
        "holder": row.holder_id,
        "first_seen": rfc3339(row.first_seen),
        "attempts": row.attempts,
        "look_at": rfc3339(row.look_at),
    }


def _groups(request: Request, groups: Any, name: str) -> dict[str, Any]:
    """A page of groups; its offset is how many larger ones were given before."""
    amount, after = page_of(request)
    start = number_of(after, "after") if after else 0
    rows = list(groups[start : start + amount + 1])
    page, told = a_page(rows, amount, lambda row: start + amount)
    results = [{name: row["group"], "blockers": row["blockers"], "oldest": rfc3339(row["oldest"])} for row in page]
    return told | {"results": results}


def _told(mirror: Mirror) -> dict[str, Any]:
    """Of a range that lacks very many things, only the first are kept by name."""
    return {"all_named": not is_cut_short(mirror)}
