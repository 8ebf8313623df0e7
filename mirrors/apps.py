"""Mirrors: what is mirrored, how far it has come, and the duties that bring it there."""

from django.apps import AppConfig


class MirrorsConfig(AppConfig):
    name = "mirrors"

    def ready(self) -> None:
        """Tell the steps of mirrors, and what of their duties only they know."""
        from jobs import duties, housekeeping
        from mirrors import installed, mirror_duties, steps, versions

        steps.register_mirrors()
        duties.register_home(duties.Home(versions.beyond_us, mirror_duties.needed))
        housekeeping.register_refresh(installed.refresh)
