"""Groups by API: who is in them, and which policies they have."""

from __future__ import annotations

from functools import partial

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.policies import auth_arn
from core.errors import NotFound
from rbac import services
from rbac.api.field_names import told_as_id
from rbac.api.paging import PAGE, listed
from rbac.api.schemas import (
    GroupAnswer,
    GroupCreation,
    PolicyAnswer,
    UserAnswer,
    group_json,
    listing,
    policy_json,
    user_json,
)
from rbac.models import Group
from web.openapi import answers

group_arn = partial(auth_arn, "group")
"""The group as a resource."""


class Groups(APIView):
    """All groups."""

    tag = "groups"

    @answers("List groups", 200, listing(GroupAnswer), query=PAGE)
    def get(self, request: Request) -> Response:
        """A page of groups by id. Needs auth:ListGroups on `*`."""
        services.require(request.user, ("auth:ListGroups", "*"))
        return listed(request, Group.objects.all(), "name", group_json)

    @answers("Create a group", 201, GroupAnswer, body=GroupCreation)
    def post(self, request: Request) -> Response:
        """201 with the group, empty. Needs auth:CreateGroup on group/{id}."""
        body = GroupCreation(data=request.data)
        body.is_valid(raise_exception=True)
        name, description = body.validated_data["id"], body.validated_data.get("description", "")
        services.require(request.user, ("auth:CreateGroup", group_arn(name)))
        with told_as_id("name"):
            group = services.group_create(actor=request.user, name=name, description=description)
        return Response(group_json(group), status=201)


class OneGroup(APIView):
    """One group: see, remove."""

    tag = "groups"

    @answers("Get a group", 200, GroupAnswer)
    def get(self, request: Request, group_id: str) -> Response:
        """The group. Needs auth:ReadGroup on group/{group_id}."""
        services.require(request.user, ("auth:ReadGroup", group_arn(group_id)))
        return Response(group_json(services.group_find(group_id)))

    @answers("Delete a group", 204, fails=[409])
    def delete(self, request: Request, group_id: str) -> Response:
        """Its members lose what it gave them. Needs auth:DeleteGroup on group/{group_id}."""
        services.require(request.user, ("auth:DeleteGroup", group_arn(group_id)))
        services.group_delete(actor=request.user, group=services.group_find(group_id))
        return Response(status=204)


class Members(APIView):
    """Who is in a group."""

    tag = "groups"

    @answers("List members of a group", 200, listing(UserAnswer), query=PAGE)
    def get(self, request: Request, group_id: str) -> Response:
        """A page of users by id. Needs auth:ReadGroup on group/{group_id}."""
        services.require(request.user, ("auth:ReadGroup", group_arn(group_id)))
        return listed(request, services.members_of(services.group_find(group_id)), "username", user_json)


class Member(APIView):
    """One user in a group."""

    tag = "groups"

    @answers("Add a member to a group", 201, fails=[409])
    def put(self, request: Request, group_id: str, user_id: str) -> Response:
        """201, also if they were in it. Needs auth:AddGroupMember on group/{group_id}."""
        services.require(request.user, ("auth:AddGroupMember", group_arn(group_id)))
        group, user = services.group_find(group_id), services.user_find(user_id)
        services.group_add(actor=request.user, group=group, user=user)
        return Response(status=201)

    @answers("Remove a member from a group", 204, fails=[409])
    def delete(self, request: Request, group_id: str, user_id: str) -> Response:
        """204; 404 if they were not in it. Needs auth:RemoveGroupMember on group/{group_id}."""
        services.require(request.user, ("auth:RemoveGroupMember", group_arn(group_id)))
        group, user = services.group_find(group_id), services.user_find(user_id)
        if not services.group_remove(actor=request.user, group=group, user=user):
            raise NotFound(f"user '{user_id}' is not in group '{group_id}'")
        return Response(status=204)


class GroupPolicies(APIView):
    """The policies of a group."""

    tag = "groups"

    @answers("List policies of a group", 200, listing(PolicyAnswer), query=PAGE)
    def get(self, request: Request, group_id: str) -> Response:
        """A page of policies by id. Needs auth:ReadGroup on group/{group_id}."""
        services.require(request.user, ("auth:ReadGroup", group_arn(group_id)))
        return listed(request, services.policies_held(group=services.group_find(group_id)), "name", policy_json)


class GroupPolicy(APIView):
    """One policy of a group."""

    tag = "groups"

    @answers("Attach a policy to a group", 201, fails=[409])
    def put(self, request: Request, group_id: str, policy_id: str) -> Response:
        """201, also if it had it. Needs auth:AttachPolicy on group/{group_id}."""
        services.require(request.user, ("auth:AttachPolicy", group_arn(group_id)))
        group, policy = services.group_find(group_id), services.policy_find(policy_id)
        services.policy_attach(actor=request.user, policy=policy, group=group)
        return Response(status=201)

    @answers("Detach a policy from a group", 204, fails=[409])
    def delete(self, request: Request, group_id: str, policy_id: str) -> Response:
        """204; 404 if it didn't have it. Needs auth:DetachPolicy on group/{group_id}."""
        services.require(request.user, ("auth:DetachPolicy", group_arn(group_id)))
        group, policy = services.group_find(group_id), services.policy_find(policy_id)
        if not services.policy_detach(actor=request.user, policy=policy, group=group):
            raise NotFound(f"policy '{policy_id}' isn't attached to group '{group_id}'")
        return Response(status=204)
