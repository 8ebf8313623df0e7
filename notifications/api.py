"""The replication API: what is wrong now, and what was."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.notifications.kinds import AlertKind, Severity
from notifications.status import CLOSED, OPEN, alert_json, alerts_seen_by
from rbac import services as rbac
from web.openapi import answers
from web.paging import PAGE, newest_first, one_of
from web.schemas import page_answer, text_or_null, time_or_null

STATUS = OpenApiParameter("status", str, enum=[OPEN, CLOSED], description="only those; both unless told")


class AlertAnswer(serializers.Serializer):
    """Something that is wrong, or was: what, since when, what to do, and the page that helps."""

    id = serializers.IntegerField()
    kind = serializers.ChoiceField([kind.value for kind in AlertKind])
    subject = serializers.CharField(help_text="what it is about: with `kind` the same for as long as it lasts")
    status = serializers.ChoiceField([OPEN, CLOSED])
    severity = serializers.ChoiceField([severity.value for severity in Severity])
    name = serializers.CharField()
    region = text_or_null()
    reason = serializers.CharField(help_text="what is wrong, as it was last told")
    remedy = serializers.CharField()
    url = serializers.CharField(help_text="the page that helps; a path, unless notifications.site_url is configured")
    cause = text_or_null()
    since = serializers.DateTimeField()
    opened_at = time_or_null()
    closed_at = time_or_null()
    now = text_or_null()


class Alerts(APIView):
    """What is wrong now, and what was."""

    tag = "notifications"

    @answers("List alerts", 200, page_answer(AlertAnswer), query=[*PAGE, STATUS])
    def get(self, request: Request) -> Response:
        """A page of alerts, the last one first. Those of mirrors and exports that the caller may not see are left out.
        Needs fs:ListRepositories on `*`."""
        rbac.require(request.user, ("fs:ListRepositories", "*"))
        rows = alerts_seen_by(request.user)
        wanted = one_of(request, "status", (OPEN, CLOSED))
        rows = rows.filter(closed_at__isnull=wanted == OPEN) if wanted else rows
        return Response(newest_first(request, rows, alert_json))
