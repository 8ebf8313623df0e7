"""Notifications: what is wrong is watched, and told to those who want to hear of it, so that nobody has to look."""

from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "notifications"

    def ready(self) -> None:
        """Make the duties known, and have the controller see to their rows."""
        from jobs import housekeeping, kinds
        from notifications import rounds

        housekeeping.register(rounds.look_round)
        kinds.register(kinds.DutyKind(rounds.DUTY, rounds.watch, lambda: rounds.SECONDS, rounds.needed))
