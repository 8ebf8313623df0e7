"""The replication API: rules."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.rule_rights import rule_arn
from core.replicating.explain import STATES
from db import clock
from db.labels import with_labels
from rbac import services as rbac
from replication.api.bodies import RuleCreation, RuleSettings
from replication.api.hidden import hidden_json
from replication.api.retry_body import RetryBody
from replication.api.serializers import ObjectsRetriedAnswer, RuleAnswer, RuleCheckedAnswer, checked, rule_json
from replication.models import Rule
from replication.preflight.checks import check_plan
from replication.services import rules
from replication.services.rights import LIST
from replication.services.rules import DELETE, OPERATE, READ, UPDATE, etag_of, find_rule
from replication.status.rules import rule_reading, rule_readings
from web.etags import seen
from web.labels import LABEL, wanted_labels
from web.openapi import IF_MATCH, OpenApiParameter, answers, etag
from web.paging import PAGE, a_page, one_of, page_of
from web.pauses import PauseTerms, stated_in
from web.schemas import ToldAnswer, check_json, page_answer
from web.serializers import rfc3339

STATE_VALUES = [state.value for state in STATES]
STATE = OpenApiParameter("state", str, enum=STATE_VALUES, description="only those in this state, as the pages say it")


def permitted(request: Request, action: str, name: str) -> None:
    """Return if the caller has this right on the rule, be it there or not. Raises NotSignedIn and Denied."""
    rbac.require(request.user, (action, rule_arn(name)))


def readable(request: Request, name: str) -> Rule:
    """The rule, for somebody who may read it. Raises Denied and NotFound."""
    permitted(request, READ, name)
    return find_rule(name)


def rule_answer(request: Request, rule: Rule, status: int = 200) -> Response:
    """A rule as it stands, with the tag of its settings; of one that the caller may change, or operate, but not read
    no more than what that shows."""
    may_read = rbac.allowed(request.user, READ, rule_arn(rule.name))
    told = rule_json(rule_reading(rule, clock.now())) if may_read else hidden_json(rule, clock.now())
    return Response(told, status=status, headers={"ETag": etag_of(rule)})


class Rules(APIView):
    """All rules."""

    tag = "rules"

    @answers("List replication rules", 200, page_answer(RuleAnswer), query=[*PAGE, STATE, LABEL])
    def get(self, request: Request) -> Response:
        """A page of rules by name. With `?state=` a page may have fewer than asked for. Needs fs:ListReplicationRules
        on `*`."""
        rbac.require(request.user, LIST)
        state = one_of(request, "state", STATE_VALUES)
        rows = with_labels(Rule.objects.live(), wanted_labels(request.query_params.getlist("label")))
        amount, after = page_of(request)
        rows = rows.filter(name__gt=after).order_by("name")
        page, answer = a_page(list(rows[: amount + 1]), amount, lambda rule: rule.name)
        readings = rule_readings(page, clock.now())
        results = [rule_json(reading) for reading in readings if not state or reading.told.state == state]
        answer["pagination"]["results"] = len(results)
        return Response(answer | {"results": results})

    @answers("Create a replication rule", 201, RuleAnswer, body=RuleCreation, query=[etag(201)])
    def post(self, request: Request) -> Response:
        """201: its places are compared at once, and what the targets lack is copied. 409 for a name that is in use, and
        for a target of another rule; 503 while a store does not answer: then nothing is stored. Needs
        fs:CreateReplicationRule on replication/{name}, and fs:AttachStorageNamespace on namespace/{uri} of each place.
        """
        body = RuleCreation(data=request.data)
        checked(body)
        rule = rules.rule_create(actor=request.user, wish=body.wish())
        told = rule_json(rule_reading(rule, clock.now()))  # all of which the caller has just said
        return Response(told, status=201, headers={"ETag": etag_of(rule)})


class RulePreflight(APIView):
    """Check a rule that somebody thinks of."""

    tag = "rules"

    @answers("Check a replication rule", 200, RuleCheckedAnswer, body=RuleCreation)
    def post(self, request: Request) -> Response:
        """The body of POST `/rules`; nothing is stored. The source is listed and read; below each target an object is
        written, read and removed again. Needs what creating needs."""
        body = RuleCreation(data=request.data)
        checked(body)
        preflight = check_plan(actor=request.user, wish=body.wish(), writing=True)
        checks = [check_json(check) for check in preflight.checks]
        return Response({"ok": preflight.ok, "checks": checks, "as_of": rfc3339(preflight.as_of)})


class RuleDetail(APIView):
    """One rule: see it, change its settings, delete it."""

    tag = "rules"

    @answers("Get a replication rule", 200, RuleAnswer, query=[etag(200)])
    def get(self, request: Request, rule: str) -> Response:
        """The rule with its links. Needs fs:ReadReplicationRule on it."""
        return rule_answer(request, readable(request, rule))

    @answers("Change a replication rule", 200, RuleAnswer, body=RuleSettings, query=[IF_MATCH, etag(200)], fails=[412])
    def patch(self, request: Request, rule: str) -> Response:
        """Change the settings that the body names. Needs fs:UpdateReplicationRule on it."""
        permitted(request, UPDATE, rule)
        changes: dict[str, Any] = dict(checked(RuleSettings(data=request.data)))
        if_match = seen(request.headers.get("If-Match", ""))
        return rule_answer(request, rules.rule_update(actor=request.user, name=rule, changes=changes, seen=if_match))

    @answers("Delete a replication rule", 204, query=[IF_MATCH], fails=[412])
    def delete(self, request: Request, rule: str) -> Response:
        """Copy no more. No object is deleted anywhere. Needs fs:DeleteReplicationRule on it."""
        permitted(request, DELETE, rule)
        if_match = seen(request.headers.get("If-Match", ""))
        rules.rule_delete(actor=request.user, name=rule, seen=if_match)
        return Response(status=204)


class RulePause(APIView):
    """Pause a rule."""

    tag = "rules"

    @answers("Pause a replication rule", 200, RuleAnswer, body=PauseTerms, query=[etag(200)])
    def post(self, request: Request, rule: str) -> Response:
        """Nothing new is copied within 10 s; what changes meanwhile is noted. The body may say why, and until when it
        is meant: it does not end by itself. Needs fs:OperateReplicationRule on it."""
        permitted(request, OPERATE, rule)
        stated = stated_in(request.data)
        return rule_answer(request, rules.rule_pause(actor=request.user, name=rule, paused=True, stated=stated))


class RuleResume(APIView):
    """Resume a rule."""

    tag = "rules"

    @answers("Resume a replication rule", 200, RuleAnswer, query=[etag(200)])
    def post(self, request: Request, rule: str) -> Response:
        """Go on; links that are paused by themselves stay so. Needs fs:OperateReplicationRule on it."""
        permitted(request, OPERATE, rule)
        return rule_answer(request, rules.rule_pause(actor=request.user, name=rule, paused=False))


class RuleScan(APIView):
    """Compare a rule's places now."""

    tag = "rules"

    @answers("Scan a replication rule", 202, ToldAnswer)
    def post(self, request: Request, rule: str) -> Response:
        """202: all places are listed and compared now. 409 for a rule that is paused. Needs fs:OperateReplicationRule
        on it."""
        permitted(request, OPERATE, rule)
        rules.rule_scan(actor=request.user, name=rule)
        return Response({"message": "source and targets are compared now"}, status=202)


class RuleRetry(APIView):
    """Try objects of a rule again."""

    tag = "rules"

    @answers("Retry objects of a replication rule", 202, ObjectsRetriedAnswer, body=RetryBody)
    def post(self, request: Request, rule: str) -> Response:
        """202 with how many objects are tried at once, of all links: `{"all": true}`, those with a `code`, or those of
        `items`. Needs fs:OperateReplicationRule on it."""
        permitted(request, OPERATE, rule)
        body = RetryBody(data=request.data)
        checked(body)
        number = rules.rule_retry(actor=request.user, name=rule, **body.which())
        return Response({"number": number}, status=202)
