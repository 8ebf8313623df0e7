"""Regions: their lakeFS, store and credentials, added while everything runs, and whether they work."""

from django.apps import AppConfig


class InstallationsConfig(AppConfig):
    name = "installations"

    def ready(self) -> None:
        """Have the controller see what was added, and every region asked whether it answers."""
        from installations import contact, refresh
        from jobs import housekeeping, kinds

        housekeeping.register_refresh(refresh.refresh)
        housekeeping.register(contact.look_round)
        kinds.register(
            kinds.DutyKind(contact.DUTY, contact.ask, lambda: contact.SECONDS, contact.needed, label="Contact region")
        )
