"""Continuous export: branches, copied to places that need no lakeFS to be read."""

from django.apps import AppConfig


class ExportsConfig(AppConfig):
    name = "exports"

    def ready(self) -> None:
        from exports import duty_kinds
        from exports.engine import abandoned_destinations
        from exports.models import Export
        from exports.services import destinations, needed_rights, permissions
        from installations.claimed_places import register_places
        from installations.needed_rights import register_needs
        from jobs import housekeeping

        duty_kinds.register()
        housekeeping.register(Export.forget_ended)
        permissions.register_exports()
        register_needs(needed_rights.needs)
        register_places("exports", destinations.places, abandoned_destinations.forget)
