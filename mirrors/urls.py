"""Addresses of the mirrors' pages."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from mirrors import creation_views, views

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="mirrors"), name="home"),
    path("mirrors/", views.mirror_list, name="mirrors"),
    path("mirrors/new/", creation_views.mirror_new, name="mirror_new"),
    path("mirrors/<str:name>/", views.mirror_detail, name="mirror"),
    path("mirrors/<str:name>/sync/", views.mirror_sync, name="mirror_sync"),
    path("mirrors/<str:name>/pause/", views.mirror_pause, {"paused": True}, name="mirror_pause"),
    path("mirrors/<str:name>/resume/", views.mirror_pause, {"paused": False}, name="mirror_resume"),
    path("mirrors/<str:name>/reset-branch/", views.branch_reset, name="branch_reset"),
    path("mirrors/<str:name>/delete/", views.mirror_delete, name="mirror_delete"),
]
