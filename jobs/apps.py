"""Recurring work: duties, their leases, the queue, and what workers said of them."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"

    def ready(self) -> None:
        """Have the audit looked after by the controller too."""
        from audit import rounds
        from jobs import housekeeping

        housekeeping.register(rounds.look_round)
