"""The replication API: deletions that wait for somebody, and links that wait to be confirmed."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.replicating.states import ApprovalState
from db.chunks import rows_in_chunks
from replication.api.fields import Text
from replication.api.links import FORMAT
from replication.api.open_answers import OpenObjectAnswer, open_json
from replication.api.rules import permitted, readable, rule_answer
from replication.api.serializers import RuleAnswer
from replication.models import Approval
from replication.services import approvals
from replication.services.approvals import APPROVE, find_approval
from replication.services.rules import OPERATE, find_rule
from web.csv_export import TableView, csv_answer, wants_csv
from web.openapi import answers, etag
from web.paging import PAGE, by_number, one_of
from web.schemas import page_answer, time_or_null
from web.serializers import Body, rfc3339

STATES = [state.value for state in ApprovalState]
STATE = OpenApiParameter("state", str, enum=STATES, description="only those in this state")


class ApprovalAnswer(serializers.Serializer):
    """Deletions of a link, more at once than its rule does by itself."""

    id = serializers.IntegerField()
    link = serializers.IntegerField(help_text="number of the link")
    region = serializers.CharField()
    uri = serializers.CharField()
    state = serializers.ChoiceField(STATES)
    objects = serializers.IntegerField(help_text="to be deleted, as they were judged")
    bytes = serializers.IntegerField()
    of_objects = serializers.IntegerField(help_text="so many the link had at its target then")
    deleted_lately = serializers.IntegerField(
        help_text="so many were let through without an approval in the 24 hours before"
    )
    more = serializers.BooleanField(help_text="there were more than are kept; they are asked for after these")
    left = serializers.IntegerField(help_text="of these the source has not got back since")
    first_keys = serializers.ListField(child=serializers.CharField(), help_text="the first 100")
    asked_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    decided_at = time_or_null()
    decided_by = serializers.CharField(allow_null=True)


class DecisionBody(Body):
    """Why."""

    reason = Text(required=False, max_length=1000)


def approval_json(approval: Approval) -> dict[str, Any]:
    """Deletions that wait, or did."""
    return {
        "id": approval.pk,
        "link": approval.link.number,
        "region": approval.link.region,
        "uri": approval.link.uri,
        "state": approval.state,
        "objects": approval.number,
        "bytes": approval.bytes,
        "of_objects": approval.of,
        "deleted_lately": approval.lately,
        "more": approval.more,
        "left": approval.rows.count() if approval.state == ApprovalState.WAITING else 0,
        "first_keys": approval.first_keys,
        "asked_at": rfc3339(approval.asked_at),
        "expires_at": rfc3339(approval.expires_at),
        "decided_at": rfc3339(approval.decided_at),
        "decided_by": approval.decided_by or None,
    }


class RuleApprovals(APIView):
    """What waits."""

    tag = "rules"

    @answers("List deletions that wait for approval", 200, page_answer(ApprovalAnswer), query=[*PAGE, STATE])
    def get(self, request: Request, rule: str) -> Response:
        """A page of deletions that waited for somebody, and of those that do, the newest first. Needs
        fs:ReadReplicationRule on the rule."""
        found = readable(request, rule)
        rows = Approval.objects.filter(link__rule=found).select_related("link")
        if state := one_of(request, "state", STATES):
            rows = rows.filter(state=state)
        return Response(by_number(request, rows, approval_json, "pk", newest=True))


class RuleApproval(TableView):
    """One of them."""

    tag = "rules"

    @answers("Get deletions that wait for approval", 200, ApprovalAnswer, query=[FORMAT], csv=True)
    def get(self, request: Request, rule: str, approval: int) -> HttpResponseBase:
        """How many they are; with `?format=csv` all objects that are still to be deleted by it. Needs
        fs:ReadReplicationRule on the rule."""
        found = find_approval(readable(request, rule), approval)
        if wants_csv(request):
            columns = tuple(OpenObjectAnswer().fields)
            rows = map(open_json, rows_in_chunks(found.rows.order_by("pk")))
            return csv_answer(f"{rule}-deletes-{approval}", columns, rows)
        return Response(approval_json(found))


class Decision(APIView):
    """What approving and rejecting share."""

    tag = "rules"

    def decided(self, request: Request, rule: str, approval: int, *, approved: bool) -> Response:
        """It is decided."""
        permitted(request, APPROVE, rule)
        body = DecisionBody(data=request.data)
        body.is_valid(raise_exception=True)
        reason = body.validated_data.get("reason", "")
        done = approvals.approval_decide(
            actor=request.user, name=rule, number=approval, approved=approved, reason=reason
        )
        return Response(approval_json(done))


class RuleApprove(Decision):
    """Approve."""

    @answers("Approve deletions", 200, ApprovalAnswer, body=DecisionBody, fails=[409])
    def post(self, request: Request, rule: str, approval: int) -> Response:
        """Exactly these are deleted at the target, but for what the source has again by then. 409 if somebody has
        decided, or it has expired, or the link is frozen or stale. Needs fs:ApproveReplicationDeletes on the rule."""
        return self.decided(request, rule, approval, approved=True)


class RuleReject(Decision):
    """Reject."""

    @answers("Reject deletions", 200, ApprovalAnswer, body=DecisionBody, fails=[409])
    def post(self, request: Request, rule: str, approval: int) -> Response:
        """These objects stay at the target, and are not asked for again until something changes. 409 if somebody has
        decided, or it has expired. Needs fs:ApproveReplicationDeletes on the rule."""
        return self.decided(request, rule, approval, approved=False)


class LinkConfirmTarget(APIView):
    """The target is the right one."""

    tag = "rules"

    @answers("Confirm the target of a link", 200, RuleAnswer, query=[etag(200)], fails=[409])
    def post(self, request: Request, rule: str, number: int) -> Response:
        """Its pin is written anew, and what it lacks is copied. 409 for a link that is not stale. Needs
        fs:OperateReplicationRule on the rule."""
        permitted(request, OPERATE, rule)
        approvals.confirm_target(actor=request.user, name=rule, number=number)
        return rule_answer(request, find_rule(rule))


class LinkConfirmSource(APIView):
    """The source is the right one."""

    tag = "rules"

    @answers("Confirm the source for a link", 200, RuleAnswer, query=[etag(200)], fails=[409])
    def post(self, request: Request, rule: str, number: int) -> Response:
        """Deletions are judged anew by the next whole comparison. 409 for a link that is not frozen. Needs
        fs:ApproveReplicationDeletes on the rule."""
        permitted(request, APPROVE, rule)
        approvals.confirm_source(actor=request.user, name=rule, number=number)
        return rule_answer(request, find_rule(rule))
