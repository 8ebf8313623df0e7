"""Recurring work: duties, their leases, the queue, and what workers said of them."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"

    def ready(self) -> None:
        """Have the audit looked after by the controller too, and have it say that this deployment is here."""
        from audit import rounds
        from jobs import deployments, housekeeping

        housekeeping.register(rounds.look_round)
        housekeeping.register(deployments.look_round)
