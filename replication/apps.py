"""Replication rules: what lies in any place of a store is copied to others."""

from django.apps import AppConfig


class ReplicationConfig(AppConfig):
    name = "replication"

    def ready(self) -> None:
        from installations import contact
        from installations.claimed_places import register_places
        from installations.needed_rights import register_needs
        from jobs import housekeeping
        from mirrors.services.arrivals import register_hearer
        from replication import duty_kinds
        from replication.models import Link, Pass, Rule
        from replication.queries.one_place import one_place
        from replication.services import needed_rights, permissions, places
        from replication.transitions.touching import objects_changed

        duty_kinds.register()
        register_hearer(objects_changed)
        housekeeping.register(Rule.forget_ended)
        housekeeping.register(Link.forget_ended)
        housekeeping.register(Pass.forget_ended)
        permissions.register_rules()
        register_needs(needed_rights.needs)
        contact.register_place(one_place)
        register_places(places.APP, places.places, places.forget)
