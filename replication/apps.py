"""Replication rules: what lies in any place of a store is copied to others."""

from django.apps import AppConfig


class ReplicationConfig(AppConfig):
    name = "replication"

    def ready(self) -> None:
        from jobs import housekeeping
        from mirrors.services.arrivals import register_hearer
        from replication import duty_kinds
        from replication.models import Link, Rule
        from replication.transitions.touching import objects_changed

        duty_kinds.register()
        register_hearer(objects_changed)
        housekeeping.register(Rule.forget_ended)
        housekeeping.register(Link.forget_ended)
