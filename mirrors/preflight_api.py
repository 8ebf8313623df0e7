"""What would keep a mirror from working, asked before it is made."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from core.preflight import Check
from core.selection import ALL
from mirrors.api import MirrorDetail, creation_of
from mirrors.preflight import preflight
from mirrors.preflight_questions import Plan
from mirrors.serializers import rfc3339


class MirrorPreflight(MirrorDetail):
    """POST checks a plan; the other verbs are those of a mirror that somebody named `preflight`."""

    def post(self, request: Request, repository: str, mirror_id: str) -> Response:
        """200 with every check; nothing is stored. The body, and the rights, are those of creation."""
        given = creation_of(request, repository)
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
