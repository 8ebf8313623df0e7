"""Addresses of the API of signing in, below /api/v1/auth/."""

from django.urls import path

from rbac.api import signin

urlpatterns = [
    path("users/<str:user>/sessions", signin.Sessions.as_view(), name="api-sessions"),
    path("users/<str:user>/sessions/<str:session>", signin.OneSession.as_view(), name="api-session"),
    path(
        "users/<str:user>/password-reset-link",
        signin.PasswordResetLink.as_view(),
        name="api-password-reset-link",
    ),
]
