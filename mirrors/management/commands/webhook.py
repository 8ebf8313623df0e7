"""`manage.py webhook REGION URL`: the file that makes an installation's repositories tell of their changes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from core.installations.webhook_action import ACTION_FILE, FILLED_IN, SECRET_VARIABLE
from deployment import config
from mirrors.services.webhook_file import webhook_file
from rbac.management.base import AccessCommand


class Command(AccessCommand):
    help = (
        f"Print {ACTION_FILE} for the repositories of a source. lakeFS fills in the secret from its environment: which "
        "variable that is, and its value, is printed on standard error."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("region", help="the source's region")
        parser.add_argument(
            "url", help="this deployment's address as lakeFS reaches it: https://lakemirror.example.com"
        )
        parser.add_argument(
            "--with-secret",
            action="store_true",
            help="write the secret into the file (which is committed), for a lakeFS whose environment you can't change",
        )

    def run(self, **options: Any) -> None:
        """Upload what it prints to each repository to be mirrored, and commit it."""
        region, clear = options["region"], options["with_secret"]
        secret = str(config.current().hook_secret(region))
        text = webhook_file(region, options["url"], secret if clear else FILLED_IN)
        self.stdout.write(text)
        if not clear:
            self.stderr.write("Before you commit the file: without this, lakeFS runs no hooks of these events.")
            self.stderr.write(f"The lakeFS of {region} needs in its environment: {SECRET_VARIABLE}={secret}")
