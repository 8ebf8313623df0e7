"""The access app: who may do what."""

from django.apps import AppConfig


class RbacConfig(AppConfig):
    name = "rbac"
    verbose_name = "Access"

    def ready(self) -> None:
        """Tell the steps of access."""
        from rbac import permission_catalog

        permission_catalog.register_access()
