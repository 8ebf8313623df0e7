"""The record of who did what: chained, sealed, verified; refusals; how it is searched."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class AuditConfig(AppConfig):
    name = "audit"

    def ready(self) -> None:
        """Hear of sessions, and of tables that were made anew."""
        from audit import db_triggers, sign_in_signals

        pre_migrate.connect(db_triggers.make_way, sender=self, dispatch_uid="audit.db_triggers")
        post_migrate.connect(db_triggers.install, sender=self, dispatch_uid="audit.db_triggers")
        sign_in_signals.listen()
