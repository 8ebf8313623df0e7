"""Addresses of the replication API, below /service/replication/v1/."""

from django.urls import include, path

from installations import api as installations_api
from mirrors import (
    api,
    audit_api,
    blockers_api,
    commits_api,
    everywhere_api,
    hooks,
    jobs_api,
    metrics_api,
    overview_api,
    preflight_api,
    preview_api,
    repair_api,
    risk_api,
    runs_api,
    search_api,
    validations_api,
    waivers_api,
)
from web import openapi

_of_mirror = [
    path("branches", commits_api.Branches.as_view(), name="api-branches"),
    path("commits", commits_api.Commits.as_view(), name="api-commits"),
    path("commits/<str:commit>", commits_api.CommitDetail.as_view(), name="api-commit"),
    path("runs", runs_api.Runs.as_view(), name="api-runs"),
    path("runs/<int:number>", runs_api.RunDetail.as_view(), name="api-run"),
    path("promotions", api.Promotions.as_view(), name="api-promotions"),
    path("tags", api.Tags.as_view(), name="api-tags"),
    path("lag", risk_api.Lag.as_view(), name="api-lag"),
    path("metrics", metrics_api.Metrics.as_view(), name="api-metrics"),
    path("gc-safety", risk_api.GcSafety.as_view(), name="api-gc-safety"),
    path("loss", risk_api.Losses.as_view(), name="api-loss"),
    path("prioritise", risk_api.Prioritise.as_view(), name="api-prioritise"),
    path("reset-branch", api.BranchReset.as_view(), name="api-reset-branch"),
    path("pause", api.Pause.as_view(), name="api-pause"),
    path("resume", api.Resume.as_view(), name="api-resume"),
    path("sync", api.Sync.as_view(), name="api-sync"),
    path("commits/<str:commit>/certificate", commits_api.CommitCertificate.as_view(), name="api-certificate"),
    path("commits/<str:commit>/repair", repair_api.CommitRepair.as_view(), name="api-repair"),
    path("blockers", blockers_api.Blockers.as_view(), name="api-blockers"),
    path("blockers/retry", blockers_api.BlockersRetry.as_view(), name="api-blockers-retry"),
    path("validate", validations_api.Validate.as_view(), name="api-validate"),
    path("validations", validations_api.Validations.as_view(), name="api-validations"),
    path("validations/<int:job>", validations_api.ValidationDetail.as_view(), name="api-validation"),
    path("waivers", waivers_api.Waivers.as_view(), name="api-waivers"),
    path("waivers/<int:waiver>", waivers_api.WaiverDetail.as_view(), name="api-waiver"),
]

urlpatterns = [
    path("openapi.json", openapi.Document.as_view(), name="api-openapi"),
    path("overview", overview_api.Overview.as_view(), name="api-overview"),
    path("audit", audit_api.Audit.as_view(), name="api-audit"),
    path("jobs", jobs_api.Jobs.as_view(), name="api-jobs"),
    path("jobs/<str:job>", jobs_api.JobDetail.as_view(), name="api-job"),
    path("jobs/<str:job>/log", jobs_api.JobLog.as_view(), name="api-job-log"),
    path("jobs/<str:job>/stop", jobs_api.JobStop.as_view(), name="api-job-stop"),
    path("jobs/<str:job>/retry", jobs_api.JobRetry.as_view(), name="api-job-retry"),
    path("installations", installations_api.Installations.as_view(), name="api-installations"),
    path("installations/<str:region>", installations_api.InstallationDetail.as_view(), name="api-installation"),
    path(
        "installations/<str:region>/test", installations_api.InstallationTested.as_view(), name="api-installation-test"
    ),
    path("search", search_api.Search.as_view(), name="api-search"),
    path("mirrors", everywhere_api.AllMirrors.as_view(), name="api-all-mirrors"),
    path("commits/<str:commit>/regions", everywhere_api.CommitRegions.as_view(), name="api-commit-regions"),
    path("repositories/<str:repository>/mirrors", api.Mirrors.as_view(), name="api-mirrors"),
    path(
        "repositories/<str:repository>/mirrors/preflight",
        preflight_api.MirrorPreflight.as_view(),
        {"mirror_id": "preflight"},
        name="api-preflight",
    ),
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
