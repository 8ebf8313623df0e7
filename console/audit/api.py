"""The replication API: who did what, over all mirrors and all access."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from audit import refusals, search
from audit.chain_status import ChainStatus, chain_status
from audit.models import AuditEvent
from db import clock
from rbac import services as rbac
from web.csv_export import FORMATS, TableView, csv_answer, wants_csv
from web.openapi import answers
from web.paging import PAGE, page_of, pagination
from web.schemas import count_or_null, page_with, text_or_null, time_or_null
from web.serializers import rfc3339

MAY_SEE = ("auth:ListAuditEvents", "*")


class EventAnswer(serializers.Serializer):
    """Who did what to which resource, or was refused it. `number` and `digest`: its place in the chain, null before."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField(allow_blank=True, help_text="a user, or `system:` and a component")
    key_id = text_or_null()
    action = serializers.CharField()
    arn = serializers.CharField()
    refused = serializers.BooleanField()
    times = serializers.IntegerField(help_text="how many refused attempts it stands for")
    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)
    reason = text_or_null()
    request_id = text_or_null()
    address = text_or_null()
    number = count_or_null()
    digest = text_or_null()


class ChainAnswer(serializers.Serializer):
    """The chain's head, and up to where it was read again. `wrong`: what is broken, in words."""

    number = serializers.IntegerField()
    digest = serializers.CharField()
    whole_up_to = serializers.IntegerField()
    checked_at = time_or_null()
    wrong = text_or_null()
    waiting = serializers.IntegerField(help_text="events not chained yet")
    sealed_up_to = serializers.IntegerField()


class StrangersAnswer(serializers.Serializer):
    """How often somebody without the right credentials was refused in the last 24 hours, from one network."""

    kind = serializers.CharField()
    network = serializers.CharField()
    times = serializers.IntegerField()
    first = serializers.DateTimeField(help_text="the hour in which it began")
    last = serializers.DateTimeField()


WHICH = (
    OpenApiParameter("actor", str, description="only what this user did"),
    OpenApiParameter("action", str, description="only this action, or those with this prefix: `auth:*`"),
    OpenApiParameter("resource", str, description="only this ARN, or those with this prefix"),
    OpenApiParameter("from", str, description="from this time or day on"),
    OpenApiParameter("to", str, description="before this time, or up to the end of this day"),
    OpenApiParameter("refused", str, enum=("true",), description="only refused attempts"),
    OpenApiParameter("text", str, description="only events that contain this, also in before and after"),
)
FORMAT = OpenApiParameter("format", str, enum=FORMATS, description="csv: all of them as a file, not a page")


class Audit(TableView):
    """The record of who did what."""

    tag = "audit"

    @answers(
        "List audit events",
        200,
        page_with(EventAnswer, chain=ChainAnswer(), strangers=StrangersAnswer(many=True)),
        query=[*PAGE, *WHICH, FORMAT],
        csv=True,
    )
    def get(self, request: Request) -> HttpResponseBase:
        """A page of events, the last first; or all as CSV. Needs auth:ListAuditEvents on `*`."""
        rbac.require(request.user, MAY_SEE)
        query = search.asked_for(request.query_params)
        if wants_csv(request):
            return csv_answer("audit", tuple(EventAnswer().fields), map(_csv_row, search.everything(query)))
        amount, after = page_of(request)
        # A page may hold less than what was asked for, or nothing, and yet have a next one.
        page = search.look(query, after=after, amount=amount)
        return Response(
            {
                "pagination": pagination(len(page.rows), page.next),
                "as_of": rfc3339(clock.now()),
                "results": [event_json(row) for row in page.rows],
                "chain": chain_json(chain_status()),
                "strangers": strangers_json(),
            }
        )


def event_json(row: AuditEvent) -> dict[str, Any]:
    """An event."""
    return {
        "id": row.pk,
        "at": rfc3339(row.at),
        "actor": row.actor,
        "key_id": row.key_id or None,
        "action": row.action,
        "arn": row.arn,
        "refused": row.refused,
        "times": row.times,
        "before": row.before,
        "after": row.after,
        "reason": row.reason or None,
        "request_id": row.request_id or None,
        "address": row.address,
        "number": row.number,
        "digest": row.digest or None,
    }


def _csv_row(row: AuditEvent) -> dict[str, Any]:
    event = event_json(row)
    return event | {name: json.dumps(event[name]) if event[name] else None for name in ("before", "after")}


def chain_json(now: ChainStatus) -> dict[str, Any]:
    """The chain."""
    return {
        "number": now.head.number,
        "digest": now.head.digest,
        "whole_up_to": now.head.whole_number,
        "checked_at": rfc3339(now.head.whole_at),
        "wrong": now.head.wrong or None,
        "waiting": now.waiting,
        "sealed_up_to": now.sealed,
    }


def strangers_json() -> list[dict[str, Any]]:
    """Refusals of strangers, the most first."""
    return [
        {
            "kind": row["action"],
            "network": row["network"],
            "times": row["total"],
            "first": rfc3339(row["first"]),
            "last": rfc3339(row["last"]),
        }
        for row in refusals.of_strangers(clock.now())
    ]
