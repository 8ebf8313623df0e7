"""Addresses of signing in and out, and of what a user has of their own."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from rbac.signin import openid_views
from rbac.signin.views import SignIn
from rbac.views import account

_SESSIONS = "account/sessions/"
_SESSIONS_OF = "access/users/<str:username>/sessions/"

urlpatterns = [
    path("login/", SignIn.as_view(), name="login"),
    path("logout/", LogoutView.as_view(next_page="login"), name="logout"),
    path("login/openid/", openid_views.begin, name="openid"),
    path("login/openid/return/", openid_views.come_back, name="openid_return"),
    path(_SESSIONS, account.sessions, name="sessions"),
    path(f"{_SESSIONS}end/", account.sessions_end, name="sessions_end"),
    path(f"{_SESSIONS}<str:handle>/end/", account.session_end, name="session_end"),
    path(_SESSIONS_OF, account.sessions, name="user_sessions"),
    path(f"{_SESSIONS_OF}end/", account.sessions_end, name="user_sessions_end"),
    path(f"{_SESSIONS_OF}<str:handle>/end/", account.session_end, name="user_session_end"),
    path("account/password/", account.password, name="password"),
    path("password-reset/<uidb64>/<token>/", account.ResetPassword.as_view(), name="password_reset_confirm"),
]
