"""The access app: who may do what, and who did it."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class RbacConfig(AppConfig):
    name = "rbac"
    verbose_name = "Access"

    def ready(self) -> None:
        """Let the audit hear of sessions, and of tables that were made anew; tell the steps of access."""
        from rbac import steps
        from rbac.auditing import guard, sessions

        pre_migrate.connect(guard.make_way, sender=self, dispatch_uid="rbac.auditing.guard")
        post_migrate.connect(guard.install, sender=self, dispatch_uid="rbac.auditing.guard")
        sessions.listen()
        steps.register_access()
