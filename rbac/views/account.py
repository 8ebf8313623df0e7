"""A user's own pages: sessions and password; an administrator's view of somebody's sessions."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.views import PasswordResetConfirmView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access.policies import auth_arn
from core.errors import Conflict, Invalid
from rbac import services
from rbac.models import Session, User
from rbac.signin import brute_force, passwords, user_agent
from rbac.signin import sessions as signed_in
from rbac.signin.forms import NewPasswordForm, PasswordForm


@never_cache
@require_safe
def sessions(request: HttpRequest, username: str = "") -> HttpResponse:
    """Where somebody is signed in: the reader, or the user of that name."""
    user = _whose(request, username, "auth:ReadUser")
    current = signed_in.handle_of(request)
    rows = [_row(session, current) for session in signed_in.sessions_of(user)]
    may_end = not username or services.allowed(request.user, "auth:UpdateUser", user.arn)
    context = {"account": user, "own": not username, "rows": rows, "may_end": may_end, "now": timezone.now()}
    return render(request, "account/sessions.html", context | {"others": sum(not row["current"] for row in rows)})


@require_POST
def session_end(request: HttpRequest, handle: str, username: str = "") -> HttpResponse:
    """Sign one browser out; who ends their own goes to the sign-in page."""
    user = _whose(request, username, "auth:UpdateUser")
    current = signed_in.handle_of(request)
    signed_in.session_end(actor=_actor(request), user=user, handle=handle)
    if handle == current:
        request.session.flush()
        return redirect("login")
    messages.success(request, "Session ended.")
    return redirect(_list_of(username))


@require_POST
def sessions_end(request: HttpRequest, username: str = "") -> HttpResponse:
    """Sign all other browsers out."""
    user = _whose(request, username, "auth:UpdateUser")
    current = signed_in.handle_of(request)
    number = signed_in.sessions_end(actor=_actor(request), user=user, but=current)
    messages.success(request, f"Ended {number} {'session' if number == 1 else 'sessions'}.")
    return redirect(_list_of(username))


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    """Change one's own password: asks for the old one, which may be guessed no faster than when signing in."""
    services.require(request.user)
    form = PasswordForm(_actor(request), data=request.POST or None)
    status = 200
    if request.method == "POST":
        place = brute_force.place(request, _actor(request).username)
        wait = brute_force.begin_attempt(place)
        form.wait = wait
        if form.is_valid() and _replaced(request, form, "changed by themselves"):
            brute_force.succeeded(place)
            update_session_auth_hash(request, form.user)
            messages.success(request, "Password changed. All other sessions have ended.")
            return redirect("sessions")
        status = 429 if wait else 200
    response = render(request, "account/password.html", {"form": form}, status=status)
    if status == 429:
        response["Retry-After"] = str(form.wait)
    return response


class ResetPassword(PasswordResetConfirmView):
    """Choose a new password by a link; Django keeps the link's token out of the address that is shown."""

    form_class = NewPasswordForm
    template_name = "account/reset.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form: Any) -> HttpResponse:
        """Replace it, and go to sign in by it."""
        if not _replaced(self.request, form, "by a one-time link"):
            return self.form_invalid(form)
        messages.success(self.request, "Password changed. Sign in with it.")
        self.request.session.pop("_password_reset_token", None)
        return redirect(self.success_url)


def _replaced(request: HttpRequest, form: Any, reason: str) -> bool:
    """Whether the form's password is the user's now; else the form says why."""
    try:
        passwords.password_replace(user=form.user, password=form.cleaned_data["new_password1"], reason=reason)
    except Invalid as error:
        form.add_error("new_password1", str(error))
    except Conflict as error:
        form.add_error(None, str(error))
    return not form.errors


def _whose(request: HttpRequest, username: str, action: str) -> User:
    """The reader, or for who may the user of that name. Whether there is one, strangers are not told."""
    services.require(request.user)
    if not username:
        return _actor(request)
    services.require(request.user, (action, auth_arn("user", username)))
    return services.user_find(username)


def _actor(request: HttpRequest) -> User:
    """Who asks, as an object of their own."""
    assert isinstance(request.user, User)
    return request.user


def _list_of(username: str) -> str:
    return reverse("user_sessions", args=[username]) if username else reverse("sessions")


def _row(session: Session, current: str) -> dict[str, Any]:
    return {"session": session, "browser": user_agent.in_words(session.browser), "current": session.handle == current}
