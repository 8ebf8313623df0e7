"""Addresses of the pages of installations."""

from __future__ import annotations

from django.urls import path

from installations import views

urlpatterns = [
    path("installations/", views.installation_list, name="installations"),
    path("installations/new/", views.installation_new, name="installation_new"),
    path("installations/<str:region>/", views.installation_detail, name="installation"),
    path("installations/<str:region>/edit/", views.installation_edit, name="installation_edit"),
    path("installations/<str:region>/test/", views.installation_tested, name="installation_test"),
    path("installations/<str:region>/delete/", views.installation_deleted, name="installation_delete"),
]
