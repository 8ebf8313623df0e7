"""Addresses of the pages of exports."""

from django.urls import path

from exports.views import export, form_page
from exports.views import list as list_views

urlpatterns = [
    path("exports/", list_views.export_list, name="exports"),
    path("exports/change/", list_views.exports_change, name="exports_change"),
    path("exports/new/", form_page.export_new, name="export_new"),
    path("exports/<int:number>/", export.export_detail, name="export"),
    path("exports/<int:number>/edit/", form_page.export_edit, name="export_edit"),
    path("exports/<int:number>/run/", export.export_run, name="export_run"),
    path("exports/<int:number>/repair/", export.export_repair, name="export_repair"),
    path("exports/<int:number>/verify/", export.export_verify, name="export_verify"),
    path("exports/<int:number>/repair-drift/", export.export_repair_drift, name="export_repair-drift"),
    path("exports/<int:number>/pause/", export.export_pause, {"paused": True}, name="export_pause"),
    path("exports/<int:number>/resume/", export.export_pause, {"paused": False}, name="export_resume"),
    path("exports/<int:number>/limits/", export.export_limits, name="export_limits"),
    path("exports/<int:number>/labels/", export.export_label, name="export_label"),
    path("exports/<int:number>/delete/", export.export_delete, name="export_delete"),
]
