"""The replication API: maintenance windows."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.policies import maintenance_arn
from core.notifications.maintenance import LONGEST_REASON, Maintenance
from core.notifications.rules import LONGEST_PATTERN, MOST_PATTERNS
from db import clock
from installations.api import body_of
from notifications.maintenance import (
    ENDED,
    MANAGE,
    PLANNED,
    RUNNING,
    maintenance_create,
    maintenance_end,
    maintenance_json,
)
from notifications.models import MaintenanceWindow
from rbac import services as rbac
from web.openapi import answers
from web.paging import PAGE, newest_first
from web.schemas import many_texts, page_answer, text_or_null


def _patterns() -> serializers.ListField:
    child = serializers.CharField(max_length=LONGEST_PATTERN)
    return serializers.ListField(child=child, max_length=MOST_PATTERNS, required=False)


class MaintenancePlan(serializers.Serializer):
    """The body: what it covers, from when to when, and why. Without patterns it covers everything."""

    names = _patterns()
    regions = _patterns()
    starts_at = serializers.DateTimeField(required=False, help_text="now, unless given")
    ends_at = serializers.DateTimeField()
    reason = serializers.CharField(max_length=LONGEST_REASON)


class MaintenanceEnd(serializers.Serializer):
    """The body of an end: nothing."""


class MaintenanceAnswer(serializers.Serializer):
    """A maintenance window. `ended_by`: who ended it early."""

    id = serializers.IntegerField()
    state = serializers.ChoiceField([PLANNED, RUNNING, ENDED])
    names = many_texts()
    regions = many_texts()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    reason = serializers.CharField()
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    ended_by = text_or_null()


class MaintenanceWindows(APIView):
    """All maintenance windows: list them, create one."""

    tag = "notifications"

    @answers("List maintenance windows", 200, page_answer(MaintenanceAnswer), query=PAGE)
    def get(self, request: Request) -> Response:
        """A page of windows, the newest first. Needs fs:ListRepositories on `*`."""
        rbac.require(request.user, ("fs:ListRepositories", "*"))
        return Response(newest_first(request, MaintenanceWindow.objects.all(), maintenance_json))

    @answers("Create a maintenance window", 201, MaintenanceAnswer, body=MaintenancePlan)
    def post(self, request: Request) -> Response:
        """201: while it lasts, no messages are sent about what it covers. Needs fs:ManageMaintenance on
        `arn:lakefs:fs:::maintenance/new`."""
        rbac.require(request.user, (MANAGE, maintenance_arn("new")))
        given = body_of(MaintenancePlan, request)
        wish = Maintenance(
            given.get("starts_at") or clock.now(),
            given["ends_at"],
            given["reason"],
            tuple(given.get("names", ())),
            tuple(given.get("regions", ())),
        )
        return Response(maintenance_json(maintenance_create(actor=request.user, wish=wish)), status=201)


class MaintenanceEnded(APIView):
    """That one is over."""

    tag = "notifications"

    @answers("End a maintenance window", 200, MaintenanceAnswer, body=MaintenanceEnd, fails=[409])
    def post(self, request: Request, window: int) -> Response:
        """It ends now, or never begins. Needs fs:ManageMaintenance on its ARN."""
        rbac.require(request.user, (MANAGE, maintenance_arn(window)))
        body_of(MaintenanceEnd, request)
        return Response(maintenance_json(maintenance_end(actor=request.user, number=window)))
