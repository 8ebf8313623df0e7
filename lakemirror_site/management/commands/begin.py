"""`manage.py begin`: what a run needs before anybody can sign in, in one process: a start costs more than the work."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Create the tables, the built-in policies and the first administrator with an access key (ensure_admin)."
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0, interactive=False)
        call_command("ensure_admin", access_key=True, stdout=self.stdout)
