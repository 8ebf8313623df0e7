"""Addresses of mirrors in the replication API, below /service/replication/v1/."""

from django.urls import include, path

from mirrors.api import (
    blockers,
    commits,
    cost,
    everywhere,
    metrics,
    mirrors,
    preflight,
    repair,
    risk,
    runs,
    validations,
    waivers,
    webhooks,
)
from mirrors.api.holds import held, hook
from mirrors.api.objects import copying, locate

_of_mirror = [
    path("branches", commits.Branches.as_view(), name="api-branches"),
    path("commits", commits.Commits.as_view(), name="api-commits"),
    path("commits/<str:commit>", commits.CommitDetail.as_view(), name="api-commit"),
    path("runs", runs.Runs.as_view(), name="api-runs"),
    path("runs/<int:number>", runs.RunDetail.as_view(), name="api-run"),
    path("held-merges", held.HeldMerges.as_view(), name="api-held-merges"),
    path("promotions", mirrors.Promotions.as_view(), name="api-promotions"),
    path("tags", mirrors.Tags.as_view(), name="api-tags"),
    path("lag", risk.Lag.as_view(), name="api-lag"),
    path("metrics", metrics.Metrics.as_view(), name="api-metrics"),
    path("gc-safety", risk.GcSafety.as_view(), name="api-gc-safety"),
    path("unreplicated", preflight.Unreplicated.as_view(), name="api-unreplicated"),
    path("loss", risk.Losses.as_view(), name="api-loss"),
    path("prioritise", risk.Prioritise.as_view(), name="api-prioritise"),
    path("reset-branch", mirrors.BranchReset.as_view(), name="api-reset-branch"),
    path("policy", preflight.MirrorPolicies.as_view(), name="api-mirror-policy"),
    path("pause", mirrors.Pause.as_view(), name="api-pause"),
    path("resume", mirrors.Resume.as_view(), name="api-resume"),
    path("sync", mirrors.Sync.as_view(), name="api-sync"),
    path("commits/<str:commit>/certificate", commits.CommitCertificate.as_view(), name="api-certificate"),
    path("commits/<str:commit>/repair", repair.CommitRepair.as_view(), name="api-repair"),
    path("blockers", blockers.Blockers.as_view(), name="api-blockers"),
    path("blockers/retry", blockers.BlockersRetry.as_view(), name="api-blockers-retry"),
    path("copying", copying.Copying.as_view(), name="api-copying"),
    path("copying/pause", copying.CopyingPause.as_view(), name="api-copying-pause"),
    path("copying/resume", copying.CopyingResume.as_view(), name="api-copying-resume"),
    path("copying/limits", copying.CopyingLimits.as_view(), name="api-copying-limits"),
    path("bring", blockers.Bring.as_view(), name="api-bring"),
    path("validate", validations.Validate.as_view(), name="api-validate"),
    path("validations", validations.Validations.as_view(), name="api-validations"),
    path("validations/<int:job>", validations.ValidationDetail.as_view(), name="api-validation"),
    path("waivers", waivers.Waivers.as_view(), name="api-waivers"),
    path("waivers/<int:waiver>", waivers.WaiverDetail.as_view(), name="api-waiver"),
]

urlpatterns = [
    path("mirrors", everywhere.AllMirrors.as_view(), name="api-all-mirrors"),
    path("commits/<str:commit>/regions", everywhere.CommitRegions.as_view(), name="api-commit-regions"),
    path("repositories/<str:repository>/objects/locate", locate.Locate.as_view(), name="api-locate"),
    path("repositories/<str:repository>/mirrors", mirrors.Mirrors.as_view(), name="api-mirrors"),
    path(
        "repositories/<str:repository>/mirrors/preflight",
        preflight.MirrorPreflight.as_view(),
        {"mirror_id": "preflight"},
        name="api-preflight",
    ),
    path(
        "repositories/<str:repository>/mirrors/preview",
        cost.MirrorPreview.as_view(),
        {"mirror_id": "preview"},
        name="api-preview",
    ),
    path(
        "repositories/<str:repository>/mirrors/unreplicated",
        preflight.PlannedUnreplicated.as_view(),
        {"mirror_id": "unreplicated"},
        name="api-planned-unreplicated",
    ),
    path("repositories/<str:repository>/mirrors/<str:mirror_id>", mirrors.MirrorDetail.as_view(), name="api-mirror"),
    path("repositories/<str:repository>/mirrors/<str:mirror_id>/", include(_of_mirror)),
    path("hooks/lakefs/<str:installation>", webhooks.lakefs_hook, name="api-lakefs-hook"),
    path("hooks/hold/<str:installation>", hook.hold_hook, name="api-hold-hook"),
    path("hooks/s3/<str:installation>", webhooks.s3_hook, name="api-s3-hook"),
]
