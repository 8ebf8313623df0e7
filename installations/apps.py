"""Regions: their lakeFS, store and credentials, added while everything runs, and whether they work."""

from django.apps import AppConfig


class InstallationsConfig(AppConfig):
    name = "installations"

    def ready(self) -> None:
        """Have the controller see what was added."""
        from installations import refresh
        from jobs import housekeeping

        housekeeping.register_refresh(refresh.refresh)
