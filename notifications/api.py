"""The replication API: what is wrong now, and what was."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.policies import alert_arn
from core.notifications.kinds import AlertKind, Severity
from installations.api import body_of
from mirrors.services.rights import require_sight
from notifications.answers import ACKNOWLEDGE, LONGEST, LONGEST_NOTE, alert_acknowledge, alert_snooze
from notifications.status import CLOSED, OPEN, alert_json, alerts_seen_by
from rbac import services as rbac
from web.openapi import answers
from web.paging import PAGE, newest_first, one_of
from web.schemas import page_answer, text_or_null, time_or_null

STATUS = OpenApiParameter("status", str, enum=[OPEN, CLOSED], description="only these; default: both")


class AlertAnswer(serializers.Serializer):
    """Something that is wrong, or was: what, since when, what to do, and the page that helps."""

    id = serializers.IntegerField()
    kind = serializers.ChoiceField([kind.value for kind in AlertKind])
    subject = serializers.CharField(help_text="what it is about: with `kind` the same for as long as it lasts")
    status = serializers.ChoiceField([OPEN, CLOSED])
    severity = serializers.ChoiceField([severity.value for severity in Severity])
    name = serializers.CharField()
    region = text_or_null()
    labels = serializers.DictField(child=serializers.CharField(), help_text="of the mirror, export or rule")
    reason = serializers.CharField(help_text="what is wrong, as last known")
    remedy = serializers.CharField()
    url = serializers.CharField(help_text="the page that helps; a path, unless notifications.site_url is configured")
    cause = text_or_null()
    since = serializers.DateTimeField()
    opened_at = time_or_null()
    closed_at = time_or_null()
    now = serializers.CharField(allow_null=True, help_text="how the subject was doing when it closed")
    acknowledged_at = time_or_null()
    acknowledged_by = text_or_null()
    note = text_or_null()
    snoozed_until = time_or_null()


class Acknowledgement(serializers.Serializer):
    """The body: a note, if there is something to say."""

    note = serializers.CharField(required=False, allow_blank=True, max_length=LONGEST_NOTE)


class Snooze(serializers.Serializer):
    """The body: for how long; 0 ends a snooze."""

    seconds = serializers.IntegerField(min_value=0, max_value=LONGEST)


class Alerts(APIView):
    """What is wrong now, and what was."""

    tag = "notifications"

    @answers("List alerts", 200, page_answer(AlertAnswer), query=[*PAGE, STATUS])
    def get(self, request: Request) -> Response:
        """A page of alerts, the last one first. Those of mirrors, exports and rules that the caller may not see are
        left out. Needs fs:ListRepositories on `*`, or fs:ReadRepository on single mirrors."""
        require_sight(request.user)
        rows = alerts_seen_by(request.user)
        wanted = one_of(request, "status", (OPEN, CLOSED))
        rows = rows.filter(closed_at__isnull=wanted == OPEN) if wanted else rows
        return Response(newest_first(request, rows, alert_json))


class AlertAcknowledged(APIView):
    """That somebody sees to it."""

    tag = "notifications"

    @answers("Acknowledge an alert", 200, AlertAnswer, body=Acknowledgement, fails=[409])
    def post(self, request: Request, alert: int) -> Response:
        """It is not told again before it closes. Needs fs:AcknowledgeAlert on its ARN, and to see it."""
        rbac.require(request.user, (ACKNOWLEDGE, alert_arn(alert)))
        note = body_of(Acknowledgement, request).get("note", "")
        return Response(alert_json(alert_acknowledge(actor=request.user, number=alert, note=note)))


class AlertSnoozed(APIView):
    """That it is not to be told again for a while."""

    tag = "notifications"

    @answers("Snooze an alert", 200, AlertAnswer, body=Snooze, fails=[409])
    def post(self, request: Request, alert: int) -> Response:
        """It is not told again for so long, then once if it is still open. Needs fs:AcknowledgeAlert on its ARN, and to
        see it."""
        rbac.require(request.user, (ACKNOWLEDGE, alert_arn(alert)))
        seconds = body_of(Snooze, request)["seconds"]
        return Response(alert_json(alert_snooze(actor=request.user, number=alert, seconds=seconds)))
