"""The API of signing in: where users are signed in, and links to choose a new password."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access.policies import auth_arn
from rbac import services
from rbac.models import Session, User
from rbac.signin import passwords, sessions
from rbac.signin import user_agent as browsers
from web.openapi import answers


class SessionAnswer(serializers.Serializer):
    """A browser that is signed in."""

    id = serializers.CharField()
    browser = serializers.CharField(help_text="in words: Firefox on Linux")
    user_agent = serializers.CharField()
    address = serializers.CharField(allow_null=True, help_text="where it was last seen")
    began_at = serializers.DateTimeField()
    seen_at = serializers.DateTimeField(help_text="when it was last used; recorded at most once a minute")
    expires_at = serializers.DateTimeField(help_text="when it ends unless it is used before")


class SessionsAnswer(serializers.Serializer):
    """A user's sessions, the one that was seen last first; a hundred at most."""

    as_of = serializers.DateTimeField()
    results = SessionAnswer(many=True)


class ResetLinkAnswer(serializers.Serializer):
    """A link by which a user chooses a new password, once. It is shown in this answer only."""

    link = serializers.CharField()
    expires_at = serializers.DateTimeField()


class Sessions(APIView):
    """Where one user is signed in."""

    tag = "signin"

    @answers("List sessions of a user", 200, SessionsAnswer)
    def get(self, request: Request, user: str) -> Response:
        """Open sessions of browsers. One's own need no right, those of others auth:ReadUser on them."""
        rows = sessions.sessions_of(_whose(request, user, "auth:ReadUser"))
        return Response({"as_of": timezone.now(), "results": [_as_json(row) for row in rows]})

    @answers("End all sessions of a user", 204)
    def delete(self, request: Request, user: str) -> Response:
        """Sign all browsers out. One's own need no right, those of others auth:UpdateUser on them."""
        whose = _whose(request, user, "auth:UpdateUser")
        sessions.sessions_end(actor=request.user, user=whose)
        return Response(status=204)


class OneSession(APIView):
    """One browser of a user."""

    tag = "signin"

    @answers("End one session of a user", 204)
    def delete(self, request: Request, user: str, session: str) -> Response:
        """Sign one browser out, by the id that the list gives."""
        whose = _whose(request, user, "auth:UpdateUser")
        sessions.session_end(actor=request.user, user=whose, handle=session)
        return Response(status=204)


class PasswordResetLink(APIView):
    """How somebody who forgot their password gets another one."""

    tag = "signin"

    @answers("Create a password reset link", 201, ResetLinkAnswer)
    def post(self, request: Request, user: str) -> Response:
        """Works once and for a day, and only while the password is as it is now. Needs auth:UpdateUser on the user."""
        services.require(request.user, ("auth:UpdateUser", auth_arn("user", user)))
        link = passwords.reset_link_create(actor=request.user, user=services.user_find(user))
        answer = {"link": request.build_absolute_uri(link.path), "expires_at": link.expires_at}
        return Response(answer, status=201, headers={"Cache-Control": "no-store"})


def _whose(request: Request, username: str, action: str) -> User:
    """The user of that name, for themselves and for who may."""
    services.require(request.user)
    if username != request.user.username:
        services.require(request.user, (action, auth_arn("user", username)))
    return services.user_find(username)


def _as_json(row: Session) -> dict[str, Any]:
    return {
        "id": row.handle,
        "browser": browsers.in_words(row.browser),
        "user_agent": row.browser,
        "address": row.address,
        "began_at": row.began_at,
        "seen_at": row.seen_at,
        "expires_at": row.expire_date,
    }
