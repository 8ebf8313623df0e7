"""Mirrors: what is mirrored, how far it has come, and the duties that bring it there."""

from django.apps import AppConfig


class MirrorsConfig(AppConfig):
    name = "mirrors"

    def ready(self) -> None:
        from mirrors import steps

        steps.register_mirrors()
