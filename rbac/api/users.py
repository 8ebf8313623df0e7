"""Users by API."""

from __future__ import annotations

from functools import partial

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.policies import auth_arn
from core.errors import Invalid, NotFound
from rbac import services
from rbac.api.field_names import told_as_id
from rbac.api.paging import PAGE, listed
from rbac.api.schemas import (
    CurrentUserAnswer,
    GroupAnswer,
    PolicyAnswer,
    UserAnswer,
    UserChange,
    UserCreation,
    group_json,
    listing,
    policy_json,
    user_json,
)
from rbac.models import User
from web.openapi import answers

EFFECTIVE = OpenApiParameter("effective", bool, description="true: also those of the user's groups")

user_arn = partial(auth_arn, "user")
"""The user as a resource."""


class CurrentUser(APIView):
    """Who asks."""

    tag = "users"

    @answers("Get current user", 200, CurrentUserAnswer)
    def get(self, request: Request) -> Response:
        """The user of the key or session. For everyone who is signed in."""
        services.require(request.user)
        user = user_json(request.user)
        return Response({"user": user | {"friendly_name": user["friendly_name"] or user["id"]}})


class Users(APIView):
    """All users."""

    tag = "users"

    @answers("List users", 200, listing(UserAnswer), query=PAGE)
    def get(self, request: Request) -> Response:
        """A page of users by id. Needs auth:ListUsers on `*`."""
        services.require(request.user, ("auth:ListUsers", "*"))
        return listed(request, User.objects.all(), "username", user_json)

    @answers("Create a user", 201, UserAnswer, body=UserCreation)
    def post(self, request: Request) -> Response:
        """201 with the user, who may nothing yet. Needs auth:CreateUser on user/{id}."""
        body = UserCreation(data=request.data)
        body.is_valid(raise_exception=True)
        fields = dict(body.validated_data)
        fields.pop("invite_user", None)
        username = fields.pop("id")
        services.require(request.user, ("auth:CreateUser", user_arn(username)))
        with told_as_id("username"):
            user = services.user_create(actor=request.user, username=username, **fields)
        return Response(user_json(user), status=201)


class OneUser(APIView):
    """One user: see, change, remove."""

    tag = "users"

    @answers("Get a user", 200, UserAnswer)
    def get(self, request: Request, user_id: str) -> Response:
        """The user. Needs auth:ReadUser on user/{user_id}."""
        services.require(request.user, ("auth:ReadUser", user_arn(user_id)))
        return Response(user_json(services.user_find(user_id)))

    @answers("Change a user", 200, UserAnswer, body=UserChange, fails=[409])
    def patch(self, request: Request, user_id: str) -> Response:
        """Change what the body names, all or nothing. Needs auth:UpdateUser on user/{user_id}."""
        services.require(request.user, ("auth:UpdateUser", user_arn(user_id)))
        body = UserChange(data=request.data)
        body.is_valid(raise_exception=True)
        user = services.user_find(user_id)
        _change(request, user, **body.validated_data)
        return Response(user_json(user))

    @answers("Delete a user", 204, fails=[409])
    def delete(self, request: Request, user_id: str) -> Response:
        """Remove the user with their keys, memberships and attachments. Needs auth:DeleteUser on user/{user_id}."""
        services.require(request.user, ("auth:DeleteUser", user_arn(user_id)))
        services.user_delete(actor=request.user, user=services.user_find(user_id))
        return Response(status=204)


@services.administrator_kept()
def _change(
    request: Request,
    user: User,
    *,
    email: str | None = None,
    friendly_name: str | None = None,
    is_active: bool | None = None,
    **password: str | None,
) -> None:
    actor = request.user
    services.user_edit(actor=actor, user=user, email=email, friendly_name=friendly_name)
    if "password" in password:
        services.user_set_password(actor=actor, user=user, password=password["password"] or "")
    if is_active is not None:
        services.user_set_active(actor=actor, user=user, active=is_active)


class UserGroups(APIView):
    """The groups that a user is in."""

    tag = "users"

    @answers("List groups of a user", 200, listing(GroupAnswer), query=PAGE)
    def get(self, request: Request, user_id: str) -> Response:
        """A page of groups by id. Needs auth:ReadUser on user/{user_id}."""
        services.require(request.user, ("auth:ReadUser", user_arn(user_id)))
        return listed(request, services.groups_of(services.user_find(user_id)), "name", group_json)


class UserPolicies(APIView):
    """The policies of a user."""

    tag = "users"

    @answers("List policies of a user", 200, listing(PolicyAnswer), query=[*PAGE, EFFECTIVE])
    def get(self, request: Request, user_id: str) -> Response:
        """A page of policies by id: attached to the user, or all that count. Needs auth:ReadUser on user/{user_id}."""
        services.require(request.user, ("auth:ReadUser", user_arn(user_id)))
        effective = is_true(request, "effective")
        user = services.user_find(user_id)
        rows = services.policies_effective(user) if effective else services.policies_held(user=user)
        return listed(request, rows, "name", policy_json)


class UserPolicy(APIView):
    """One policy of a user."""

    tag = "users"

    @answers("Attach a policy to a user", 201, fails=[409])
    def put(self, request: Request, user_id: str, policy_id: str) -> Response:
        """201, also if they had it. Needs auth:AttachPolicy on user/{user_id}."""
        services.require(request.user, ("auth:AttachPolicy", user_arn(user_id)))
        user, policy = services.user_find(user_id), services.policy_find(policy_id)
        services.policy_attach(actor=request.user, policy=policy, user=user)
        return Response(status=201)

    @answers("Detach a policy from a user", 204, fails=[409])
    def delete(self, request: Request, user_id: str, policy_id: str) -> Response:
        """204; 404 if they had it through a group only. Needs auth:DetachPolicy on user/{user_id}."""
        services.require(request.user, ("auth:DetachPolicy", user_arn(user_id)))
        user, policy = services.user_find(user_id), services.policy_find(policy_id)
        if not services.policy_detach(actor=request.user, policy=policy, user=user):
            raise NotFound(
                f"policy '{policy_id}' isn't attached to user '{user_id}'", hint="Check whether it comes from a group"
            )
        return Response(status=204)


def is_true(request: Request, name: str) -> bool:
    """A parameter that is `true`, or `false` as when it isn't given."""
    given = request.query_params.get(name, "false").lower()
    if given not in ("true", "false"):
        raise Invalid(f"'{given[:40]}' is neither true nor false", field=name)
    return given == "true"
