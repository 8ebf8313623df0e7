"""Continuous export: branches, copied to places that need no lakeFS to be read."""

from django.apps import AppConfig


class ExportsConfig(AppConfig):
    name = "exports"

    def ready(self) -> None:
        from exports import steps, tasks

        tasks.register()
        steps.register_exports()
