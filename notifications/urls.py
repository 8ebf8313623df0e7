"""Addresses of the pages of notifications."""

from __future__ import annotations

from django.urls import path

from notifications import maintenance_views, views
from notifications.channels import views as channel_views

urlpatterns = [
    path("notifications/", views.notifications, name="notifications"),
    path("notifications/<int:alert>/acknowledge/", views.alert_acknowledged, name="alert_acknowledge"),
    path("notifications/<int:alert>/snooze/", views.alert_snoozed, name="alert_snooze"),
    path("notifications/maintenance/new/", maintenance_views.maintenance_new, name="maintenance_new"),
    path("notifications/maintenance/<int:window>/end/", maintenance_views.maintenance_ended, name="maintenance_end"),
    path("notifications/channels/new/", channel_views.channel_new, name="channel_new"),
    path("notifications/channels/<str:channel>/", channel_views.channel_detail, name="channel"),
    path("notifications/channels/<str:channel>/edit/", channel_views.channel_edit, name="channel_edit"),
    path("notifications/channels/<str:channel>/test/", channel_views.channel_tested, name="channel_test"),
    path("notifications/channels/<str:channel>/delete/", channel_views.channel_deleted, name="channel_delete"),
]
