"""The API of what people may do: effective permissions, a question tried out, what a draft of a policy would change.

LakeMirror's additions to lakeFS's calls below /auth.
"""

from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.policies import auth_arn, parse_policy
from rbac import services
from rbac.api.field_names import told_by_path
from rbac.api.permission_schemas import (
    Draft,
    ImpactAnswer,
    PermissionsAnswer,
    Question,
    SimulationAnswer,
    as_of,
    holding_json,
    impact_json,
    simulation_json,
)
from rbac.models import User
from rbac.services.effective_permissions import effective, simulate
from rbac.services.policy_impact import impact
from web.openapi import answers


class EffectivePermissions(APIView):
    """What a user may do, statement by statement."""

    tag = "rights"

    @answers("Get effective permissions", 200, PermissionsAnswer)
    def get(self, request: Request, user_id: str) -> Response:
        """Every statement that applies to the user, and through what. Needs auth:ReadUser, but not for oneself."""
        require_about(request.user, user_id)
        user = services.user_find(user_id)
        answer = {
            "user": user.username,
            "active": user.is_active,
            "statements": list(map(holding_json, effective(user))),
        }
        return Response(answer | as_of())


class Simulate(APIView):
    """A question, as if somebody tried."""

    tag = "rights"

    @answers("Simulate a right", 200, SimulationAnswer, body=Question)
    def post(self, request: Request) -> Response:
        """Whether a user may do an action on a resource, and why. Needs auth:ReadUser, but not for oneself."""
        body = Question(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        name = given.get("user", request.user.username)
        require_about(request.user, name)
        return Response(simulation_json(simulate(services.user_find(name), given["action"], given["arn"])) | as_of())


class PolicyImpact(APIView):
    """What a draft would change."""

    tag = "rights"

    @answers("Get the impact of a policy", 200, ImpactAnswer, body=Draft)
    def post(self, request: Request, policy_id: str) -> Response:
        """Which steps, of mirrors, exports and access, a draft would allow or break, and for whom; nothing is stored.
        Needs auth:ReadPolicy on the policy, which need not be there yet."""
        services.require(request.user, ("auth:ReadPolicy", auth_arn("policy", policy_id)))
        body = Draft(data=request.data)
        body.is_valid(raise_exception=True)
        given = body.validated_data
        statement = given["statement"]
        with told_by_path():
            draft = None if statement is None else parse_policy({"id": policy_id, "statement": statement})
        also = [services.user_find(name) for name in dict.fromkeys(given.get("users", ()))]
        return Response(impact_json(impact(policy_id, draft, also=also), request.user) | as_of())


def require_about(asker: User, username: str) -> None:
    """Everybody may ask about themselves; about others with auth:ReadUser on them."""
    own = username == getattr(asker, "username", "")
    services.require(asker, *(() if own else [("auth:ReadUser", auth_arn("user", username))]))
