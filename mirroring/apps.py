"""Mirroring: the work that brings mirrors where they should be. What mirrors are, and what is said of them, is in
mirrors/."""

from django.apps import AppConfig


class MirroringConfig(AppConfig):
    name = "mirroring"

    def ready(self) -> None:
        """Make the kinds of work known to the queues and the controller."""
        from mirroring import duty_kinds

        duty_kinds.register()
