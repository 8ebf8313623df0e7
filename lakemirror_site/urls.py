"""All addresses: health, the API and hooks, then the pages of the apps."""

from __future__ import annotations

from importlib.util import find_spec

from django.urls import URLPattern, URLResolver, include, path

from lakemirror_site import health


def _arrived(prefix: str, module: str) -> list[URLResolver]:
    """An app's addresses, once the app has them."""
    return [path(prefix, include(module))] if find_spec(module) else []


handler400 = "lakemirror_site.errors.bad_request"
handler403 = "lakemirror_site.errors.permission_denied"
handler404 = "lakemirror_site.errors.not_found"
handler500 = "lakemirror_site.errors.server_error"

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    *_arrived("service/replication/v1/", "mirrors.api_urls"),
    *_arrived("", "rbac.urls"),
    *_arrived("", "mirrors.urls"),
]
