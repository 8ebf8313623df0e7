"""Continuous export: branches, copied to places that need no lakeFS to be read."""

from django.apps import AppConfig


class ExportsConfig(AppConfig):
    name = "exports"

    def ready(self) -> None:
        from exports import duty_kinds
        from exports.engine import abandoned_destinations
        from exports.services import destinations, permissions
        from installations.claimed_places import register_places

        duty_kinds.register()
        permissions.register_exports()
        register_places("exports", destinations.places, abandoned_destinations.forget)
