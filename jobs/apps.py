"""Recurring work: duties, their leases, the queue, and what workers said of them."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "jobs"

    def ready(self) -> None:
        """What the controller does beside: look after the audit, say that this deployment is here, miss workers."""
        from audit import rounds
        from jobs import deployments, housekeeping, workers

        housekeeping.register(rounds.look_round)
        housekeeping.register(deployments.look_round)
        housekeeping.register(workers.note_lost)
