"""Pages over all apps: overview, jobs, search, audit, metrics, the API's document. No models."""

from __future__ import annotations

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "console"
