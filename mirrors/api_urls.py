"""Addresses of the replication API, below /service/replication/v1/."""

from django.urls import path

from mirrors import api, hooks

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
    path("hooks/lakefs/<str:installation>", hooks.lakefs_hook, name="api-lakefs-hook"),
]
