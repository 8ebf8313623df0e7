"""Cookies of a site that is served by https: Secure, and named so that no neighbouring host can plant one.

By https every cookie of ours goes to the browser as `__Host-<name>`, and only such are taken back. By plain http (the
demo on this machine) browsers refuse that name, so there they are as Django makes them.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

PREFIX = "__Host-"


class HostCookies:
    """Middleware outside of everything that reads or sets a cookie."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.is_secure():
            return self.get_response(request)
        sent = request.COOKIES.items()
        request.COOKIES = {name.removeprefix(PREFIX): value for name, value in sent if name.startswith(PREFIX)}
        response = self.get_response(request)
        for name in list(response.cookies):
            _rename(response, name)
        return response


def _rename(response: HttpResponse, name: str) -> None:
    old = response.cookies.pop(name)
    response.cookies[PREFIX + name] = old.value
    new = response.cookies[PREFIX + name]
    new.update({**old, "secure": True, "path": "/", "domain": ""})
