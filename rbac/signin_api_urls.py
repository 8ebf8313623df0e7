"""Addresses of the API of signing in, below /api/v1/auth/."""

from django.urls import path

from rbac import signin_api

urlpatterns = [
    path("users/<str:user>/sessions", signin_api.Sessions.as_view(), name="api-sessions"),
    path("users/<str:user>/sessions/<str:session>", signin_api.OneSession.as_view(), name="api-session"),
    path(
        "users/<str:user>/password-reset-link",
        signin_api.PasswordResetLink.as_view(),
        name="api-password-reset-link",
    ),
]
