"""The access app: who may do what, and who did it."""

from django.apps import AppConfig


class RbacConfig(AppConfig):
    name = "rbac"
    verbose_name = "Access"

    def ready(self) -> None:
        from rbac import steps

        steps.register_access()
