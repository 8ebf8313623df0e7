"""Addresses of notifications in the replication API, below /service/replication/v1/."""

from django.urls import path

from notifications import api, maintenance_api
from notifications.channels import api as channel_api

urlpatterns = [
    path("alerts", api.Alerts.as_view(), name="api-alerts"),
    path("alerts/<int:alert>/acknowledge", api.AlertAcknowledged.as_view(), name="api-alert-acknowledge"),
    path("alerts/<int:alert>/snooze", api.AlertSnoozed.as_view(), name="api-alert-snooze"),
    path("maintenance-windows", maintenance_api.MaintenanceWindows.as_view(), name="api-maintenance-windows"),
    path(
        "maintenance-windows/<int:window>/end", maintenance_api.MaintenanceEnded.as_view(), name="api-maintenance-end"
    ),
    path("channels", channel_api.Channels.as_view(), name="api-channels"),
    path("channels/<str:channel>", channel_api.ChannelDetail.as_view(), name="api-channel"),
    path("channels/<str:channel>/test", channel_api.ChannelTested.as_view(), name="api-channel-test"),
    path("channels/<str:channel>/deliveries", channel_api.Deliveries.as_view(), name="api-deliveries"),
]
