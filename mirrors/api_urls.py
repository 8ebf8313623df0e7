"""Addresses of the replication API, below /service/replication/v1/."""

from django.urls import path

from mirrors import api, hooks, validations_api, waivers_api

urlpatterns = [
    path("repositories/<str:repository>/mirrors", api.Mirrors.as_view(), name="api-mirrors"),
    path("repositories/<str:repository>/mirrors/<str:mirror_id>", api.MirrorDetail.as_view(), name="api-mirror"),
    path(
        "repositories/<str:repository>/mirrors/<str:mirror_id>/promotions",
        api.Promotions.as_view(),
        name="api-promotions",
    ),
    path("repositories/<str:repository>/mirrors/<str:mirror_id>/tags", api.Tags.as_view(), name="api-tags"),
    path(
        "repositories/<str:repository>/mirrors/<str:mirror_id>/reset-branch",
        api.BranchReset.as_view(),
        name="api-reset-branch",
    ),
    path("repositories/<str:repository>/mirrors/<str:mirror_id>/pause", api.Pause.as_view(), name="api-pause"),
    path("repositories/<str:repository>/mirrors/<str:mirror_id>/resume", api.Resume.as_view(), name="api-resume"),
    path("repositories/<str:repository>/mirrors/<str:mirror_id>/sync", api.Sync.as_view(), name="api-sync"),
    path(
        "repositories/<str:repository>/mirrors/<str:mirror_id>/validate",
        validations_api.Validate.as_view(),
        name="api-validate",
    ),
    path(
        "repositories/<str:repository>/mirrors/<str:mirror_id>/validations",
        validations_api.Validations.as_view(),
        name="api-validations",
    ),
    path(
        "repositories/<str:repository>/mirrors/<str:mirror_id>/validations/<int:job>",
        validations_api.ValidationDetail.as_view(),
        name="api-validation",
    ),
    path(
        "repositories/<str:repository>/mirrors/<str:mirror_id>/waivers",
        waivers_api.Waivers.as_view(),
        name="api-waivers",
    ),
    path(
        "repositories/<str:repository>/mirrors/<str:mirror_id>/waivers/<int:waiver>",
        waivers_api.WaiverDetail.as_view(),
        name="api-waiver",
    ),
    path(
        "repositories/<str:repository>/mirrors/<str:mirror_id>/commits/<str:commit>",
        waivers_api.CommitDetail.as_view(),
        name="api-commit",
    ),
    path("hooks/lakefs/<str:installation>", hooks.lakefs_hook, name="api-lakefs-hook"),
    path("hooks/s3/<str:installation>", hooks.s3_hook, name="api-s3-hook"),
]
