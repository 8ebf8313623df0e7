"""The two steps of signing in with an OpenID provider."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.errors import NotFound
from deployment import config
from rbac.signin import form_recovery, openid

_NEXT, _TYPED = "openid_next", "openid_typed"
_BACKEND = "django.contrib.auth.backends.ModelBackend"


@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    """Off to the provider; where to go afterwards, and what was typed, wait in the session."""
    _only_if_configured()
    request.session[_NEXT] = request.POST.get("next", "")
    request.session[_TYPED] = request.POST.get(form_recovery.FIELD, "")
    try:
        return openid.begin(request, request.build_absolute_uri(reverse("openid_return")))
    except openid.Refused as error:
        return _refused(request, error)


@require_safe
@never_cache
def come_back(request: HttpRequest) -> HttpResponse:
    """From the provider: sign in, with a session of a new key, and on to where they wanted to go."""
    _only_if_configured()
    try:
        user = openid.user_of(request)
    except openid.Refused as error:
        return _refused(request, error)
    where, sealed = request.session.pop(_NEXT, ""), request.session.pop(_TYPED, "")
    login(request, user, backend=_BACKEND)
    form_recovery.lay_by(request, sealed)
    is_own_host = url_has_allowed_host_and_scheme(where, {request.get_host()}, require_https=request.is_secure())
    return redirect(where if is_own_host else "/")


def _refused(request: HttpRequest, error: Exception) -> HttpResponse:
    messages.error(request, f"Not signed in: {error}.")
    return redirect("login")


def _only_if_configured() -> None:
    if not config.current().auth.openid.issuer:
        raise NotFound("no OpenID provider is configured")
