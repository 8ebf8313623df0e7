"""What would keep a mirror from working, asked before it is made."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.installations.preflight import Check
from core.mirroring.branch_selection import ALL
from lakemirror_site.openapi import answers
from mirrors.api import SOURCE_REGION, MirrorDetail, creation_asked
from mirrors.preflight import preflight
from mirrors.preflight_questions import Plan
from mirrors.serializers import MirrorCreation, rfc3339


class CheckAnswer(serializers.Serializer):
    """One check: what was found, and what to do about it."""

    id = serializers.CharField()
    state = serializers.ChoiceField(choices=["ok", "warning", "failed", "unknown"])
    message = serializers.CharField()
    fix = serializers.CharField(allow_blank=True)


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
        given = creation_asked(request, repository)
        settings = given.pop("settings")
        chosen = settings.get("selected", {})
        plan = Plan(
            **given,
            include=tuple(chosen.get("include", ALL)),
            exclude=tuple(chosen.get("exclude", ())),
            tags=settings.get("tags", False),
        )
        found = preflight(actor=request.user, plan=plan)
        checks = [check_json(check) for check in found.checks]
        return Response({"ok": found.ok, "checks": checks, "as_of": rfc3339(found.as_of)})


def check_json(check: Check) -> dict[str, Any]:
    """One check; `state` is ok, warning, failed or unknown."""
    return {"id": check.id, "state": check.state, "message": check.message, "fix": check.fix}
