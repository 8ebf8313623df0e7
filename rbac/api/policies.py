"""Policies by API. What is wrong with one is told with its line, statement and field."""

from __future__ import annotations

from functools import partial
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.policies import auth_arn, parse_json
from core.errors import Invalid
from rbac import services
from rbac.api.field_names import told_as_id, told_by_path
from rbac.api.paging import PAGE, listed
from rbac.api.schemas import PolicyAnswer, PolicyGiven, listing, policy_json
from rbac.models import Policy
from web.openapi import answers

policy_arn = partial(auth_arn, "policy")
"""The policy as a resource."""


class Policies(APIView):
    """All policies."""

    tag = "policies"

    @answers("List policies", 200, listing(PolicyAnswer), query=PAGE)
    def get(self, request: Request) -> Response:
        """A page of policies by id. Needs auth:ListPolicies on `*`."""
        services.require(request.user, ("auth:ListPolicies", "*"))
        return listed(request, Policy.objects.all(), "name", policy_json)

    @answers("Create a policy", 201, PolicyAnswer, body=PolicyGiven)
    def post(self, request: Request) -> Response:
        """201 with the policy, attached to nobody yet. Needs auth:CreatePolicy on policy/{id}."""
        name, document = _policy(request)
        services.require(request.user, ("auth:CreatePolicy", policy_arn(name)))
        with told_as_id("name"):
            policy = services.policy_create(actor=request.user, document=document)
        return Response(policy_json(policy), status=201)


class OnePolicy(APIView):
    """One policy: see, edit, remove."""

    tag = "policies"

    @answers("Get a policy", 200, PolicyAnswer)
    def get(self, request: Request, policy_id: str) -> Response:
        """The policy. Needs auth:ReadPolicy on policy/{policy_id}."""
        services.require(request.user, ("auth:ReadPolicy", policy_arn(policy_id)))
        return Response(policy_json(services.policy_find(policy_id)))

    @answers("Change a policy", 200, PolicyAnswer, body=PolicyGiven, fails=[409])
    def put(self, request: Request, policy_id: str) -> Response:
        """Replace its statements; they count at once. Needs auth:UpdatePolicy on policy/{policy_id}."""
        services.require(request.user, ("auth:UpdatePolicy", policy_arn(policy_id)))
        name, document = _policy(request)
        if name != policy_id:
            raise Invalid("a policy's id can't be changed", field="id", hint=f"Use '{policy_id[:80]}', as the address")
        policy = services.policy_update(
            actor=request.user, policy=services.policy_find(policy_id), statement=document["statement"]
        )
        return Response(policy_json(policy))

    @answers("Delete a policy", 204, fails=[409])
    def delete(self, request: Request, policy_id: str) -> Response:
        """Take it from everybody, and remove it. Needs auth:DeletePolicy on policy/{policy_id}."""
        services.require(request.user, ("auth:DeletePolicy", policy_arn(policy_id)))
        services.policy_delete(actor=request.user, policy=services.policy_find(policy_id))
        return Response(status=204)


def _policy(request: Request) -> tuple[str, dict[str, Any]]:
    """The id and the whole of the policy that was sent, read as text: only that has lines."""
    text = request.body.decode(errors="replace")
    document = request.data
    with told_by_path():
        return parse_json(text).name, document
