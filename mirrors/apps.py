"""Mirrors: what is mirrored, how far it has come, and what is said of it. What brings it there is in mirroring/."""

from django.apps import AppConfig


class MirrorsConfig(AppConfig):
    name = "mirrors"

    def ready(self) -> None:
        """Tell the steps of mirrors, and what they need of regions."""
        from installations import connection_test, contact, needed_rights, region_usage, services
        from jobs import housekeeping
        from mirrors.models import Mirror
        from mirrors.queries import region_traffic
        from mirrors.services import permissions

        housekeeping.register(Mirror.forget_ended)
        permissions.register_mirrors()
        services.register_user("mirror", region_traffic.mirrors_by_region)
        services.register_user("mirrored repository", region_traffic.sources_by_region)
        region_usage.register_traffic(region_traffic.traffic)
        needed_rights.register_needs(region_traffic.needs)
        connection_test.register_target(region_traffic.target)
        contact.register_place(region_traffic.place)
