"""Addresses of the pages: overview, jobs, mirrors."""

from __future__ import annotations

from django.urls import path

from mirrors import creation_views, jobs_views, list_views, overview_views, views

urlpatterns = [
    path("", overview_views.overview, name="home"),
    path("jobs/", jobs_views.jobs, name="jobs"),
    path("jobs/<int:duty>/retry/", jobs_views.duty_retry, name="duty_retry"),
    path("mirrors/", list_views.mirror_list, name="mirrors"),
    path("mirrors/_change/", list_views.mirrors_change, name="mirrors_change"),
    path("mirrors/new/", creation_views.mirror_new, name="mirror_new"),
    path("mirrors/<str:name>/", views.mirror_detail, name="mirror"),
    path("mirrors/<str:name>/sync/", views.mirror_sync, name="mirror_sync"),
    path("mirrors/<str:name>/pause/", views.mirror_pause, {"paused": True}, name="mirror_pause"),
    path("mirrors/<str:name>/resume/", views.mirror_pause, {"paused": False}, name="mirror_resume"),
    path("mirrors/<str:name>/reset-branch/", views.branch_reset, name="branch_reset"),
    path("mirrors/<str:name>/delete/", views.mirror_delete, name="mirror_delete"),
]
