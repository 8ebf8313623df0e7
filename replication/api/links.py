"""The replication API: the links of a rule, and the objects that are open there."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.replicating.states import Code, OpenStatus
from db import clock
from replication.api.bodies import LinkLimits
from replication.api.open_answers import OpenObjectAnswer, open_json
from replication.api.retry_body import RetryBody
from replication.api.rules import permitted, readable, rule_answer
from replication.api.serializers import ObjectsRetriedAnswer, RuleAnswer, checked
from replication.queries.open_objects import OpenPages
from replication.services import links
from replication.services.links import find_link
from replication.services.rules import OPERATE, find_rule
from web.csv_export import FORMATS, TableView, csv_answer, wants_csv
from web.openapi import answers, etag
from web.paging import PAGE, one_of, page_of, pagination
from web.pauses import PauseTerms, stated_in
from web.schemas import page_answer
from web.serializers import rfc3339

STATUSES = [status.value for status in OpenStatus]
CODES = [code.value for code in Code if code.value]
STATUS = OpenApiParameter("status", str, enum=STATUSES, description="only those with this status")
CODE = OpenApiParameter("code", str, enum=CODES, description="only those that failed last for this reason")
PREFIX = OpenApiParameter("prefix", str, description="only those whose key begins with this")
FORMAT = OpenApiParameter("format", str, enum=FORMATS, description="csv: all rows as a file")


class OfLink(APIView):
    """What all calls about one link share."""

    tag = "rules"

    def paused(self, request: Request, rule: str, number: int, *, paused: bool) -> Response:
        """Pause it or resume it; the rule as it is then."""
        permitted(request, OPERATE, rule)
        stated = stated_in(request.data) if paused else None
        links.link_pause(actor=request.user, name=rule, number=number, paused=paused, stated=stated)
        return rule_answer(request, find_rule(rule))


class LinkPause(OfLink):
    """Pause a link."""

    @answers("Pause a link of a replication rule", 200, RuleAnswer, body=PauseTerms, query=[etag(200)])
    def post(self, request: Request, rule: str, number: int) -> Response:
        """Nothing new is copied to this target within 10 s; what changes meanwhile is noted. Needs
        fs:OperateReplicationRule on the rule."""
        return self.paused(request, rule, number, paused=True)


class LinkResume(OfLink):
    """Resume a link."""

    @answers("Resume a link of a replication rule", 200, RuleAnswer, query=[etag(200)])
    def post(self, request: Request, rule: str, number: int) -> Response:
        """Go on with this target, unless the rule is paused. Needs fs:OperateReplicationRule on the rule."""
        return self.paused(request, rule, number, paused=False)


class LinkLimited(OfLink):
    """Limit a link."""

    @answers("Limit a link of a replication rule", 200, RuleAnswer, body=LinkLimits, query=[etag(200)])
    def post(self, request: Request, rule: str, number: int) -> Response:
        """Change how fast it copies, within 10 s also while it does. What is left out stays, null is no limit. Needs
        fs:OperateReplicationRule on the rule."""
        permitted(request, OPERATE, rule)
        changes: dict[str, Any] = dict(checked(LinkLimits(data=request.data)))
        links.link_limits(actor=request.user, name=rule, number=number, changes=changes)
        return rule_answer(request, find_rule(rule))


class LinkRetry(OfLink):
    """Try objects of a link again."""

    @answers("Retry objects of a link", 202, ObjectsRetriedAnswer, body=RetryBody)
    def post(self, request: Request, rule: str, number: int) -> Response:
        """202 with how many objects are tried at once. Needs fs:OperateReplicationRule on the rule."""
        permitted(request, OPERATE, rule)
        body = RetryBody(data=request.data)
        checked(body)
        tried = links.link_retry(actor=request.user, name=rule, number=number, **body.which())
        return Response({"number": tried}, status=202)


class LinkOpen(TableView):
    """What is open on a link."""

    tag = "rules"

    @answers(
        "List open objects of a link",
        200,
        page_answer(OpenObjectAnswer),
        query=[*PAGE, STATUS, CODE, PREFIX, FORMAT],
        csv=True,
    )
    def get(self, request: Request, rule: str, number: int) -> HttpResponseBase:
        """A page of objects that are not at this target as they are at the source, those that were noted first before
        the others, or by their keys below a prefix; or all, as CSV. Needs fs:ReadReplicationRule on the rule."""
        link = find_link(readable(request, rule), number)
        pages = OpenPages(
            link,
            status=one_of(request, "status", STATUSES),
            code=one_of(request, "code", CODES),
            prefix=request.query_params.get("prefix", ""),
        )
        if wants_csv(request):
            columns = tuple(OpenObjectAnswer().fields)
            return csv_answer(f"{rule}-{number}-open", columns, map(open_json, pages.each()))
        amount, after = page_of(request)
        rows, next_offset = pages.page(after, amount)
        answer = {"pagination": pagination(len(rows), next_offset), "as_of": rfc3339(clock.now())}
        return Response(answer | {"results": [open_json(row) for row in rows]})
