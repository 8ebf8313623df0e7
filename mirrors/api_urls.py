"""Addresses of the replication API, below /service/replication/v1/."""

from django.urls import include, path

from mirrors import api, hooks, preview_api, risk_api, validations_api, waivers_api

_of_mirror = [
    path("promotions", api.Promotions.as_view(), name="api-promotions"),
    path("tags", api.Tags.as_view(), name="api-tags"),
    path("lag", risk_api.Lag.as_view(), name="api-lag"),
    path("gc-safety", risk_api.GcSafety.as_view(), name="api-gc-safety"),
    path("loss", risk_api.Losses.as_view(), name="api-loss"),
    path("prioritise", risk_api.Prioritise.as_view(), name="api-prioritise"),
    path("reset-branch", api.BranchReset.as_view(), name="api-reset-branch"),
    path("pause", api.Pause.as_view(), name="api-pause"),
    path("resume", api.Resume.as_view(), name="api-resume"),
    path("sync", api.Sync.as_view(), name="api-sync"),
    path("validate", validations_api.Validate.as_view(), name="api-validate"),
    path("validations", validations_api.Validations.as_view(), name="api-validations"),
    path("validations/<int:job>", validations_api.ValidationDetail.as_view(), name="api-validation"),
    path("waivers", waivers_api.Waivers.as_view(), name="api-waivers"),
    path("waivers/<int:waiver>", waivers_api.WaiverDetail.as_view(), name="api-waiver"),
    path("commits/<str:commit>", waivers_api.CommitDetail.as_view(), name="api-commit"),
]

urlpatterns = [
    path("repositories/<str:repository>/mirrors", api.Mirrors.as_view(), name="api-mirrors"),
    path(
        "repositories/<str:repository>/mirrors/preview",
        preview_api.MirrorPreview.as_view(),
        {"mirror_id": "preview"},
        name="api-preview",
    ),
    path("repositories/<str:repository>/mirrors/<str:mirror_id>", api.MirrorDetail.as_view(), name="api-mirror"),
    path("repositories/<str:repository>/mirrors/<str:mirror_id>/", include(_of_mirror)),
    path("hooks/lakefs/<str:installation>", hooks.lakefs_hook, name="api-lakefs-hook"),
    path("hooks/s3/<str:installation>", hooks.s3_hook, name="api-s3-hook"),
]
