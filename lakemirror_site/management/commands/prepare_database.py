"""`manage.py prepare_database`: the tables and what is built in, by one of many processes that start at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection

from rbac.management.commands.ensure_admin import administrators
from rbac.services import builtin
from rbac.services.builtin_updates import old_policies

LOCK = 0x4C616B654D6972
"""Of PostgreSQL's advisory locks: nobody else's."""


class Command(BaseCommand):
    help = (
        "Create the tables or migrate them to this version: one process at a time, others wait until it is done. With "
        "LAKEMIRROR_ADMIN_USERNAME and LAKEMIRROR_ADMIN_PASSWORD it creates the first administrator, if there is none."
    )
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            connection.ensure_connection()
        except OperationalError as error:
            raise CommandError(f"the database refuses the connection: {' '.join(str(error).split())}") from error
        with _alone():
            call_command("migrate", verbosity=0, interactive=False)
            if administrators().exists():
                builtin.install()
            elif os.environ.get("LAKEMIRROR_ADMIN_USERNAME"):
                call_command("ensure_admin", stdout=self.stdout)
            for old in old_policies():
                self.stdout.write(old.sentence)
        self.stdout.write("the database is ready")


@contextmanager
def _alone() -> Iterator[None]:
    """Until it ends every other process that gets here waits. SQLite is for one machine, where one process prepares."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
