"""Addresses of signing in and out, and of what a user has of their own."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from rbac import account_views, openid_views
from rbac.views import SignIn

_SESSIONS = "account/sessions/"
_SESSIONS_OF = "access/users/<str:username>/sessions/"

urlpatterns = [
    path("login/", SignIn.as_view(), name="login"),
    path("logout/", LogoutView.as_view(next_page="login"), name="logout"),
    path("login/openid/", openid_views.begin, name="openid"),
    path("login/openid/return/", openid_views.come_back, name="openid_return"),
    path(_SESSIONS, account_views.sessions, name="sessions"),
    path(f"{_SESSIONS}end/", account_views.sessions_end, name="sessions_end"),
    path(f"{_SESSIONS}<str:handle>/end/", account_views.session_end, name="session_end"),
    path(_SESSIONS_OF, account_views.sessions, name="user_sessions"),
    path(f"{_SESSIONS_OF}end/", account_views.sessions_end, name="user_sessions_end"),
    path(f"{_SESSIONS_OF}<str:handle>/end/", account_views.session_end, name="user_session_end"),
    path("account/password/", account_views.password, name="password"),
    path("password-reset/<uidb64>/<token>/", account_views.ResetPassword.as_view(), name="password_reset_confirm"),
]
