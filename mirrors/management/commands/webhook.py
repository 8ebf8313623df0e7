"""`manage.py webhook REGION URL`: the file that makes an installation's repositories tell of their changes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from core.installations.webhook_action import ACTION_FILE
from mirrors.services.webhook_file import webhook_file
from rbac.management.base import AccessCommand


class Command(AccessCommand):
    help = f"Print {ACTION_FILE} for the repositories of a source, with the secret of its webhook."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("region", help="the source's region")
        parser.add_argument(
            "url", help="this deployment's address as lakeFS reaches it: https://lakemirror.example.com"
        )

    def run(self, **options: Any) -> None:
        """Upload what it prints to each repository to be mirrored, and commit it."""
        self.stdout.write(webhook_file(options["region"], options["url"]))
