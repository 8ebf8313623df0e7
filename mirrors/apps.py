"""Mirrors: what is mirrored, how far it has come, and the duties that bring it there."""

from django.apps import AppConfig


class MirrorsConfig(AppConfig):
    name = "mirrors"

    def ready(self) -> None:
        """Tell the steps of mirrors, what of their duties only they know, and what they need of regions."""
        from installations import connection_test, region_usage, services
        from mirrors import tasks
        from mirrors.queries import region_traffic
        from mirrors.services import permissions

        permissions.register_mirrors()
        tasks.register()
        services.register_user("mirror", region_traffic.mirrors_by_region)
        services.register_user("mirrored repository", region_traffic.sources_by_region)
        region_usage.register_traffic(region_traffic.traffic)
        connection_test.register_target(region_traffic.target)
