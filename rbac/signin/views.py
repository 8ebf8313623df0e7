"""Signing in and out, and the guard of every other page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from csp.decorators import csp_update
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render

from deployment import config
from rbac import services
from rbac.signin import brute_force, form_recovery
from rbac.signin.forms import SignInForm

View = Callable[..., HttpResponseBase]


def permission_required(action: str, arn: str | Callable[..., str]) -> Callable[[View], View]:
    """Let a view run only for users who may do `action` on `arn`; others get NotSignedIn or Denied.

    `arn` may name the view's own arguments (`"arn:lakefs:fs:::repository/{name}"`) or be a function of them.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            resource = arn(**kwargs) if callable(arn) else arn.format_map(kwargs)
            services.require(request.user, (action, resource))
            return view(request, *args, **kwargs)

        return guarded

    return decorate


class SignIn(LoginView):
    """Name and password, then on to `next` if it is a page of ours. Guessing gets slower and slower: 429."""

    authentication_form = SignInForm
    redirect_authenticated_user = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Who has signed in elsewhere meanwhile goes on at once."""
        if request.user.is_authenticated:
            form_recovery.lay_by(request, request.POST.get(form_recovery.FIELD, ""))
        return super().dispatch(request, *args, **kwargs)

    def get_context_data(self, **more: Any) -> dict[str, Any]:
        """What was typed elsewhere stays on the page, however often the password is wrong."""
        return super().get_context_data(**more) | _beside(self.request.POST.get(form_recovery.FIELD, ""))

    def render_to_response(self, context: dict[str, Any], **more: Any) -> HttpResponse:
        """The page."""
        return _may_lead_to_provider(super().render_to_response)(context, **more)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Check the password, unless this place has to wait first."""
        self.place = brute_force.place(request, request.POST.get("username", ""))
        wait = brute_force.begin_attempt(self.place)
        if wait:
            return self.ask_to_wait(wait)
        return super().post(request, *args, **kwargs)

    def ask_to_wait(self, seconds: int) -> HttpResponse:
        """The form again, saying how long to wait; the password was not looked at."""
        form = SignInForm(self.request, data=self.request.POST, wait=seconds)
        response = self.render_to_response(self.get_context_data(form=form), status=429)
        response["Retry-After"] = str(seconds)
        return response

    def form_valid(self, form: Any) -> HttpResponse:
        """Begin the session and forget the failures."""
        response = super().form_valid(form)
        form_recovery.lay_by(self.request, self.request.POST.get(form_recovery.FIELD, ""))
        brute_force.succeeded(self.place)
        brute_force.remember_browser(response, self.request, form.get_user().username)
        return response


def ask_to_sign_in(request: HttpRequest) -> HttpResponse:
    """The sign-in page in place of a form's answer: what was typed goes through it, and back to the form."""
    context = {"form": SignInForm(request), "next": request.get_full_path()} | _beside(form_recovery.seal(request))
    return _may_lead_to_provider(render)(request, "registration/login.html", context, status=401)


def _may_lead_to_provider(page: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Browsers follow a form only where its page's policy lets it lead, and providers pass people on to others."""
    issuer = config.current().auth.openid.issuer
    return csp_update({"form-action": [f"{urlsplit(issuer).scheme}:"]})(page) if issuer else page


def _beside(sealed: str) -> dict[str, str]:
    """What the page has beside the form."""
    openid = config.current().auth.openid
    return {"typed": sealed, "provider": openid.name if openid.issuer else ""}
