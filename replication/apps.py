"""Replication rules: what lies in any place of a store is copied to others."""

from django.apps import AppConfig


class ReplicationConfig(AppConfig):
    name = "replication"

    def ready(self) -> None:
        from jobs import housekeeping
        from replication.models import Link, Rule

        housekeeping.register(Rule.forget_ended)
        housekeeping.register(Link.forget_ended)
