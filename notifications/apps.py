"""Notifications: what is wrong is watched, and told to those who want to hear of it, so that nobody has to look."""

from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "notifications"

    def ready(self) -> None:
        """Make the duties known, and have the controller see to their rows."""
        from installations.services import register_sealed
        from jobs import housekeeping
        from jobs.kinds import DutyKind, register
        from notifications import delivery, heartbeat, permissions, rounds
        from notifications.channels import services

        housekeeping.register(rounds.look_round)
        housekeeping.register(delivery.look_round)
        housekeeping.register(heartbeat.look_round)
        register(
            DutyKind(rounds.DUTY, rounds.watch, lambda: rounds.SECONDS, rounds.needed, label="Evaluate alerts"),
            DutyKind(
                delivery.DUTY, delivery.deliver, lambda: delivery.SECONDS, delivery.needed, label="Send notifications"
            ),
            DutyKind(
                heartbeat.DUTY, heartbeat.beat, lambda: heartbeat.SECONDS, heartbeat.needed, label="Send heartbeat"
            ),
        )
        permissions.register_notifications()
        register_sealed("channel", services.rotate)
