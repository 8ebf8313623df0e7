"""What would keep a mirror from working, asked before it is made."""

from __future__ import annotations

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.mirroring.branch_selection import ALL
from mirrors.api.mirrors import SOURCE_REGION, MirrorDetail, creation_arguments
from mirrors.api.serializers import MirrorCreation
from mirrors.preflight.checks import preflight
from mirrors.preflight.questions import Plan
from web.openapi import answers
from web.schemas import CheckAnswer, check_json
from web.serializers import rfc3339


class PreflightAnswer(serializers.Serializer):
    """Every check; `ok`: nothing failed, and what decides is known."""

    ok = serializers.BooleanField()
    checks = CheckAnswer(many=True)
    as_of = serializers.DateTimeField()


class MirrorPreflight(MirrorDetail):
    """POST checks a plan; the other verbs are those of a mirror that somebody named `preflight`."""

    tag = "preflight"

    @answers("Check a plan", 200, PreflightAnswer, body=MirrorCreation, query=[SOURCE_REGION], fails=[502, 503])
    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """200 with every check; nothing is stored. The body, and the rights, are those of creation."""
        given = creation_arguments(request, repository)
        settings = given.pop("settings")
        chosen = settings.get("selected", {})
        plan = Plan(
            **given,
            include=tuple(chosen.get("include", ALL)),
            exclude=tuple(chosen.get("exclude", ())),
            tags=settings.get("tags", False),
        )
        result = preflight(actor=request.user, plan=plan)
        checks = [check_json(check) for check in result.checks]
        return Response({"ok": result.ok, "checks": checks, "as_of": rfc3339(result.as_of)})
