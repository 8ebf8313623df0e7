"""Addresses of the API of exports, below /api/v1/. A branch may hold slashes."""

from django.urls import path

from exports import api, check_api, verification_api

_BRANCH = "repositories/<str:repository>/branches/<path:branch>"

urlpatterns = [
    path("exports", api.Exports.as_view(), name="api-exports"),
    path(f"{_BRANCH}/continuous-export", api.Configuration.as_view(), name="api-export"),
    path(f"{_BRANCH}/export-check", check_api.Check.as_view(), name="api-export-check"),
    path(f"{_BRANCH}/export-hook", api.Hook.as_view(), name="api-export-hook"),
    path(f"{_BRANCH}/repair-export", api.Repair.as_view(), name="api-export-repair"),
    path(f"{_BRANCH}/export-status", api.Status.as_view(), name="api-export-status"),
    path(f"{_BRANCH}/export-runs", api.Runs.as_view(), name="api-export-runs"),
    path(f"{_BRANCH}/export-skipped", api.Skipped.as_view(), name="api-export-skipped"),
    path(f"{_BRANCH}/export-limits", api.Limits.as_view(), name="api-export-limits"),
    path(f"{_BRANCH}/export-failures", api.Failures.as_view(), name="api-export-failures"),
    path(f"{_BRANCH}/export-pause", api.Pause.as_view(), name="api-export-pause"),
    path(f"{_BRANCH}/export-resume", api.Resume.as_view(), name="api-export-resume"),
    path(f"{_BRANCH}/export-verify", verification_api.Verify.as_view(), name="api-export-verify"),
    path(f"{_BRANCH}/export-verification", verification_api.Verification.as_view(), name="api-export-verification"),
    path(f"{_BRANCH}/export-drift", verification_api.Drift.as_view(), name="api-export-drift"),
]
