"""Access keys by API. A secret is in the answer that makes the key, which nobody is to keep, and nowhere else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from rbac import services
from rbac.api.paging import PAGE, listed
from rbac.api.schemas import (
    CredentialsAnswer,
    CredentialsWithSecretAnswer,
    KeyRotation,
    KeyWishes,
    RotatedAnswer,
    key_json,
    listing,
)
from rbac.api.users import user_arn
from rbac.key_secrets import IssuedKey
from rbac.models import AccessKey
from web.openapi import answers


class Credentials(APIView):
    """The access keys of a user."""

    tag = "credentials"

    @answers("List access keys", 200, listing(CredentialsAnswer), query=PAGE)
    def get(self, request: Request, user_id: str) -> Response:
        """A page of keys by id, without secrets. Needs auth:ListCredentials on user/{user_id}."""
        services.require(request.user, ("auth:ListCredentials", user_arn(user_id)))
        return listed(request, AccessKey.objects.filter(user=services.user_find(user_id)), "key_id", key_json)

    @answers("Create an access key", 201, CredentialsWithSecretAnswer, body=KeyWishes)
    def post(self, request: Request, user_id: str) -> Response:
        """201 with the key and its secret, shown this once. Needs auth:CreateCredentials on user/{user_id}."""
        services.require(request.user, ("auth:CreateCredentials", user_arn(user_id)))
        body = KeyWishes(data=request.data)
        body.is_valid(raise_exception=True)
        user = services.user_find(user_id)
        return _shown_once(services.key_create(actor=request.user, user=user, **body.validated_data))


class OneCredential(APIView):
    """One access key: see, remove."""

    tag = "credentials"

    @answers("Get an access key", 200, CredentialsAnswer)
    def get(self, request: Request, user_id: str, access_key_id: str) -> Response:
        """The key without its secret. Needs auth:ReadCredentials on user/{user_id}."""
        services.require(request.user, ("auth:ReadCredentials", user_arn(user_id)))
        return Response(key_json(_key(user_id, access_key_id)))

    @answers("Delete an access key", 204, fails=[409])
    def delete(self, request: Request, user_id: str, access_key_id: str) -> Response:
        """It opens nothing any more. Needs auth:DeleteCredentials on user/{user_id}."""
        services.require(request.user, ("auth:DeleteCredentials", user_arn(user_id)))
        services.key_delete(actor=request.user, key=_key(user_id, access_key_id))
        return Response(status=204)


class Disable(APIView):
    """Make a key useless, and keep it in the list."""

    tag = "credentials"

    @answers("Disable an access key", 200, CredentialsAnswer)
    def post(self, request: Request, user_id: str, access_key_id: str) -> Response:
        """The key, useless for good. Needs auth:DeleteCredentials on user/{user_id}."""
        services.require(request.user, ("auth:DeleteCredentials", user_arn(user_id)))
        key = _key(user_id, access_key_id)
        services.key_disable(actor=request.user, key=key)
        return Response(key_json(key))


class Rotate(APIView):
    """Put another key in place of one, without a moment in which none works."""

    tag = "credentials"

    @answers("Rotate an access key", 201, RotatedAnswer, body=KeyRotation)
    def post(self, request: Request, user_id: str, access_key_id: str) -> Response:
        """201 with the new key and its secret, shown this once; the old one ends after the overlap.

        Needs auth:CreateCredentials and auth:DeleteCredentials on user/{user_id}.
        """
        arn = user_arn(user_id)
        services.require(request.user, ("auth:CreateCredentials", arn), ("auth:DeleteCredentials", arn))
        body = KeyRotation(data=request.data)
        body.is_valid(raise_exception=True)
        key, data = _key(user_id, access_key_id), body.validated_data
        overlap = timedelta(seconds=data["overlap_seconds"])
        issued = services.key_rotate(actor=request.user, key=key, overlap=overlap, expires_at=data.get("expires_at"))
        return _shown_once(issued, replaces=key_json(key))


def _key(user_id: str, access_key_id: str) -> AccessKey:
    """A key of this very user: that of another is not found."""
    return services.key_find(services.user_find(user_id), access_key_id)


def _shown_once(issued: IssuedKey, **more: Any) -> Response:
    body = key_json(issued.key) | {"secret_access_key": issued.secret} | more
    return Response(body, status=201, headers={"Cache-Control": "no-store"})
