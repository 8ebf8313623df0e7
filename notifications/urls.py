"""Addresses of the pages of notifications."""

from __future__ import annotations

from django.urls import path

from notifications import views

urlpatterns = [
    path("notifications/", views.notifications, name="notifications"),
]
