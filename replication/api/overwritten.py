"""The replication API: what somebody had written at a link's target, and a newer object has replaced."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from db import clock
from replication.api.links import FORMAT
from replication.api.rules import readable
from replication.models import Overwritten
from replication.services.links import find_link
from web.csv_export import TableView, csv_answer, wants_csv
from web.openapi import answers
from web.paging import PAGE, number_of, page_of, pagination
from web.schemas import page_answer
from web.serializers import rfc3339


class OverwrittenAnswer(serializers.Serializer):
    """An object that was replaced at a link's target, which lost it."""

    id = serializers.IntegerField()
    key = serializers.CharField(help_text="relative to the rule's places")
    region = serializers.CharField(help_text="of the place that had it")
    overwritten_at = serializers.DateTimeField()
    written_at = serializers.DateTimeField(help_text="as its store told")
    size = serializers.IntegerField()
    etag = serializers.CharField(allow_blank=True)


class LinkOverwritten(TableView):
    """What was overwritten at a link's target."""

    tag = "rules"

    @answers("List what a link has overwritten", 200, page_answer(OverwrittenAnswer), query=[*PAGE, FORMAT], csv=True)
    def get(self, request: Request, rule: str, number: int) -> HttpResponseBase:
        """A page of objects that somebody had written at the target, in a bucket without versions, and newer ones have
        replaced; the last ones first, of the last 1,000. Or all of these, as CSV. Needs fs:ReadReplicationRule on the
        rule."""
        link = find_link(readable(request, rule), number)
        rows = Overwritten.objects.filter(link=link.pk).select_related("link")
        if wants_csv(request):
            columns = tuple(OverwrittenAnswer().fields)
            return csv_answer(f"{rule}-{number}-overwritten", columns, map(overwritten_json, rows.iterator()))
        amount, after = page_of(request)
        rows = rows.filter(pk__lt=number_of(after, "after")) if after else rows
        some = list(rows[: amount + 1])
        following = str(some[amount - 1].pk) if len(some) > amount else ""
        some = some[:amount]
        answer = {"pagination": pagination(len(some), following), "as_of": rfc3339(clock.now())}
        return Response(answer | {"results": [overwritten_json(row) for row in some]})


def overwritten_json(row: Overwritten) -> dict[str, Any]:
    """One of them."""
    return {
        "id": row.pk,
        "key": row.name,
        "region": row.link.region,
        "overwritten_at": rfc3339(row.overwritten_at),
        "written_at": rfc3339(row.written_at),
        "size": row.size,
        "etag": row.etag,
    }
