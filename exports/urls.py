"""Addresses of the pages of exports."""

from django.urls import path

from exports import form_views, list_views, views

urlpatterns = [
    path("exports/", list_views.export_list, name="exports"),
    path("exports/change/", list_views.exports_change, name="exports_change"),
    path("exports/new/", form_views.export_new, name="export_new"),
    path("exports/<int:number>/", views.export_detail, name="export"),
    path("exports/<int:number>/edit/", form_views.export_edit, name="export_edit"),
    path("exports/<int:number>/run/", views.export_run, name="export_run"),
    path("exports/<int:number>/repair/", views.export_repair, name="export_repair"),
    path("exports/<int:number>/verify/", views.export_verify, name="export_verify"),
    path("exports/<int:number>/pause/", views.export_pause, {"paused": True}, name="export_pause"),
    path("exports/<int:number>/resume/", views.export_pause, {"paused": False}, name="export_resume"),
    path("exports/<int:number>/limits/", views.export_limits, name="export_limits"),
    path("exports/<int:number>/delete/", views.export_delete, name="export_delete"),
]
