"""Bodies and answers of the API of access. `creation_date` is in seconds since 1970, as lakeFS has it.

What lakeFS doesn't know is ours: of a user `is_active`, of a key all but its id, secret and date.
Those times are RFC 3339.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from rbac.models import AccessKey, Group, Policy, User, name_validator
from rbac.services.keys import LONGEST_OVERLAP, OVERLAP
from web.openapi import Pagination
from web.serializers import Body, TrueOrFalse, rfc3339

_TEXTS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_TEXT = {"type": "string", "minLength": 1}
_SECONDS = "seconds since 1970, UTC"


# --- bodies -----------------------------------------------------------------------------------------------------------


def _password(**more: Any) -> serializers.CharField:
    return serializers.CharField(max_length=1000, trim_whitespace=False, required=False, **more)


def _id() -> serializers.CharField:
    return serializers.CharField(max_length=128, validators=[name_validator])


class UserCreation(Body):
    """A user to be made; only the id is needed. Without a password they can only use access keys."""

    id = _id()
    invite_user = TrueOrFalse(required=False, help_text="must be false: invitations by email are not supported")
    email = serializers.EmailField(required=False, allow_blank=True)
    friendly_name = serializers.CharField(max_length=200, required=False, allow_blank=True)
    password = _password()

    def validate_invite_user(self, value: bool) -> bool:
        if value:
            raise serializers.ValidationError(
                "invitations by email are not supported: leave it out, and set a password"
            )
        return value


class UserChange(Body):
    """What is to be otherwise about a user."""

    email = serializers.EmailField(required=False, allow_blank=True)
    friendly_name = serializers.CharField(max_length=200, required=False, allow_blank=True)
    is_active = TrueOrFalse(required=False, help_text="false: neither the password nor access keys work")
    password = _password(allow_null=True, help_text="null removes it: access keys only")


class GroupCreation(Body):
    """A group to be made."""

    id = _id()
    description = serializers.CharField(max_length=200, required=False, allow_blank=True)


@extend_schema_field({"oneOf": [_TEXT, _TEXTS]})
class _Resource(serializers.Field):
    """`*`, an ARN, or several: a list, or (as lakeFS has it) text that holds a JSON list."""


class StatementAnswer(serializers.Serializer):
    """What a statement allows or denies."""

    effect = serializers.ChoiceField(choices=["allow", "deny"])
    action = serializers.ListField(child=serializers.CharField(), min_length=1)
    resource = serializers.CharField(help_text="an ARN or `*`; several are text that holds a JSON list")


class StatementGiven(StatementAnswer):
    """A statement of a policy that is given."""

    resource = _Resource()


class PolicyGiven(serializers.Serializer):
    """A policy to be stored. Its own reader checks it: core.access.policies."""

    id = serializers.CharField(max_length=128)
    statement = StatementGiven(many=True)
    creation_date = serializers.IntegerField(required=False, help_text="seconds since 1970; informational")


class KeyWishes(Body):
    """What a new key is for, and until when it is good; an empty body will do."""

    description = serializers.CharField(max_length=200, required=False, allow_blank=True)
    expires_at = serializers.DateTimeField(required=False, allow_null=True)


class KeyRotation(Body):
    """How a key is followed by another; an empty body will do."""

    overlap_seconds = serializers.IntegerField(
        min_value=0,
        max_value=int(LONGEST_OVERLAP.total_seconds()),
        default=int(OVERLAP.total_seconds()),
        help_text="how long the old key keeps working",
    )
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="of the new key; by default the lifetime of the old one"
    )


# --- answers ----------------------------------------------------------------------------------------------------------


def _moment(help_text: str) -> serializers.DateTimeField:
    return serializers.DateTimeField(allow_null=True, help_text=help_text)


class UserAnswer(serializers.Serializer):
    """A user."""

    id = serializers.CharField()
    creation_date = serializers.IntegerField(help_text=_SECONDS)
    friendly_name = serializers.CharField(allow_blank=True)
    email = serializers.CharField(allow_blank=True)
    is_active = serializers.BooleanField()
    lakefs_region = serializers.CharField(
        allow_null=True, help_text="the region whose lakeFS keys they sign in with; null for users of LakeMirror only"
    )


class CurrentUserAnswer(serializers.Serializer):
    """Who asks."""

    user = UserAnswer()


class GroupAnswer(serializers.Serializer):
    """A group; its name is its id."""

    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    creation_date = serializers.IntegerField(help_text=_SECONDS)


class PolicyAnswer(serializers.Serializer):
    """A policy."""

    id = serializers.CharField()
    creation_date = serializers.IntegerField(help_text=_SECONDS)
    statement = StatementAnswer(many=True)


class CredentialsAnswer(serializers.Serializer):
    """An access key, without its secret: nobody has that."""

    access_key_id = serializers.CharField()
    creation_date = serializers.IntegerField(help_text=_SECONDS)
    description = serializers.CharField(allow_blank=True)
    last_used_at = _moment("to the minute; null: never")
    expires_at = _moment("null: never")
    disabled_at = _moment("null: not disabled")


class CredentialsWithSecretAnswer(CredentialsAnswer):
    """A new access key, with its secret: shown this once."""

    secret_access_key = serializers.CharField()


class RotatedAnswer(CredentialsWithSecretAnswer):
    """The new key, and what it follows."""

    replaces = CredentialsAnswer()


@cache
def listing(of: type[serializers.Serializer]) -> type[serializers.Serializer]:
    """A page of such answers."""
    name = of.__name__.removesuffix("Answer") + "ListAnswer"
    return type(name, (serializers.Serializer,), {"pagination": Pagination(), "results": of(many=True)})


# --- rows as answers --------------------------------------------------------------------------------------------------


def user_json(user: User) -> dict[str, Any]:
    """A user."""
    return {
        "id": user.username,
        "creation_date": int(user.created_at.timestamp()),
        "friendly_name": user.friendly_name,
        "email": user.email,
        "is_active": user.is_active,
        "lakefs_region": user.lakefs_region or None,
    }


def group_json(group: Group) -> dict[str, Any]:
    """A group."""
    return {
        "id": group.name,
        "name": group.name,
        "description": group.description,
        "creation_date": int(group.created_at.timestamp()),
    }


def policy_json(policy: Policy) -> dict[str, Any]:
    """A policy, as any client of lakeFS can read it."""
    statements = [_statement_json(statement) for statement in policy.statement]
    return {"id": policy.name, "creation_date": int(policy.created_at.timestamp()), "statement": statements}


def _statement_json(statement: Any) -> Any:
    """As it is stored (a version that took other policies may have done that), but several resources as text."""
    if not isinstance(statement, dict) or not isinstance(statement.get("resource"), list):
        return statement
    resources = statement["resource"]
    return {**statement, "resource": json.dumps(resources) if len(resources) > 1 else resources[0]}


def key_json(key: AccessKey) -> dict[str, Any]:
    """A key without its secret."""
    return {
        "access_key_id": key.key_id,
        "creation_date": int(key.created_at.timestamp()),
        "description": key.description,
        "last_used_at": rfc3339(key.last_used_at),
        "expires_at": rfc3339(key.expires_at),
        "disabled_at": rfc3339(key.disabled_at),
    }
