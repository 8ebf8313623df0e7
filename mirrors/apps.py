"""Mirrors: what is mirrored, how far it has come, and the duties that bring it there."""

from django.apps import AppConfig


class MirrorsConfig(AppConfig):
    name = "mirrors"

    def ready(self) -> None:
        """Tell the steps of mirrors, what of their duties only they know, and what they need of regions."""
        from installations import connection_test, region_usage, services
        from jobs import duties
        from mirrors import mirror_duties, region_traffic, steps, versions

        steps.register_mirrors()
        duties.register_home(duties.Home(versions.beyond_us, mirror_duties.needed))
        services.register_user("mirror", region_traffic.mirrors_by_region)
        services.register_user("mirrored repository", region_traffic.sources_by_region)
        region_usage.register_traffic(region_traffic.traffic)
        connection_test.register_target(region_traffic.target)
