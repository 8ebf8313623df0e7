"""All addresses: health, the API and hooks, then the pages of the apps."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from console.metrics.prometheus import Metrics
from lakemirror_site import health
from mirrors.api import webhooks
from mirrors.api.holds import hook

handler400 = "lakemirror_site.error_pages.bad_request"
handler403 = "lakemirror_site.error_pages.permission_denied"
handler404 = "lakemirror_site.error_pages.not_found"
handler500 = "lakemirror_site.error_pages.server_error"

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("version", health.version, name="version"),
    path("service/replication/v1/", include("console.api_urls")),
    path("service/replication/v1/", include("installations.api_urls")),
    path("service/replication/v1/", include("notifications.api_urls")),
    path("service/replication/v1/", include("mirrors.api.urls")),
    path("service/replication/v1/", include("replication.api.urls")),
    path("api/v1/", include("rbac.api.urls")),
    path("api/v1/", include("exports.api.urls")),
    path("api/v1/auth/", include("rbac.api.signin_urls")),
    path("metrics", Metrics.as_view(), name="metrics"),
    path("hooks/lakefs/<str:installation>", webhooks.lakefs_hook, name="lakefs-hook"),
    path("hooks/hold/<str:installation>", hook.hold_hook, name="hold-hook"),
    path("hooks/s3/<str:installation>", webhooks.s3_hook, name="s3-hook"),
    path("", include("rbac.urls")),
    path("", include("rbac.views.urls")),
    path("", include("exports.urls")),
    path("", include("replication.urls")),
    path("", include("installations.urls")),
    path("", include("notifications.urls")),
    path("", include("mirrors.urls")),
    path("", include("console.urls")),
]
