"""Addresses of notifications in the replication API, below /service/replication/v1/."""

from django.urls import path

from notifications import api

urlpatterns = [
    path("alerts", api.Alerts.as_view(), name="api-alerts"),
]
