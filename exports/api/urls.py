"""Addresses of the API of exports, below /api/v1/. A branch may hold slashes."""

from django.urls import path

from exports.api import exports, labels, preflight, verifications

_BRANCH = "repositories/<str:repository>/branches/<path:branch>"

urlpatterns = [
    path("exports", exports.Exports.as_view(), name="api-exports"),
    path(f"{_BRANCH}/continuous-export", exports.Configuration.as_view(), name="api-export"),
    path(f"{_BRANCH}/export-check", preflight.Check.as_view(), name="api-export-check"),
    path(f"{_BRANCH}/export-hook", exports.Hook.as_view(), name="api-export-hook"),
    path(f"{_BRANCH}/repair-export", exports.Repair.as_view(), name="api-export-repair"),
    path(f"{_BRANCH}/export-status", exports.Status.as_view(), name="api-export-status"),
    path(f"{_BRANCH}/export-runs", exports.Runs.as_view(), name="api-export-runs"),
    path(f"{_BRANCH}/export-skipped", exports.Skipped.as_view(), name="api-export-skipped"),
    path(f"{_BRANCH}/export-limits", exports.Limits.as_view(), name="api-export-limits"),
    path(f"{_BRANCH}/export-labels", labels.Labelling.as_view(), name="api-export-labels"),
    path(f"{_BRANCH}/export-failures", exports.Failures.as_view(), name="api-export-failures"),
    path(f"{_BRANCH}/export-pause", exports.Pause.as_view(), name="api-export-pause"),
    path(f"{_BRANCH}/export-resume", exports.Resume.as_view(), name="api-export-resume"),
    path(f"{_BRANCH}/export-verify", verifications.Verify.as_view(), name="api-export-verify"),
    path(f"{_BRANCH}/export-repair-drift", verifications.RepairDrift.as_view(), name="api-export-repair-drift"),
    path(f"{_BRANCH}/export-verification", verifications.Verification.as_view(), name="api-export-verification"),
    path(f"{_BRANCH}/export-drift", verifications.Drift.as_view(), name="api-export-drift"),
]
