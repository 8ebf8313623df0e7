"""`manage.py webhook REGION URL`: the file that makes an installation's repositories tell of their changes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from core.holding import HOOK_TIMEOUT
from core.installations.webhook_action import ACTION_FILE, FILLED_IN, HOLD_FILE, SECRET_VARIABLE
from deployment import config
from mirrors.services.webhook_file import hold_file, webhook_file
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

        parser.add_argument("--hold", action="store_true", help=f"print {HOLD_FILE}: merges wait for mirrors")
        parser.add_argument("--branch", action="append", metavar="GLOB", help="with --hold: into these; default: main")
        parser.add_argument("--copies", type=int, default=1, help="with --hold: in so many regions; default: 1")
        parser.add_argument("--timeout", type=int, default=HOOK_TIMEOUT, help="with --hold: of the hook, in seconds")

    def run(self, **options: Any) -> None:
        """Upload what it prints to each repository to be mirrored, and commit it."""
        region, clear = options["region"], options["with_secret"]
        secret = str(config.current().hook_secret(region))
        written = secret if clear else FILLED_IN
        if options["hold"]:
            of = {"branches": options["branch"] or ["main"], "copies": options["copies"], "timeout": options["timeout"]}
            self.stdout.write(hold_file(region, options["url"], written, **of))
            self.stderr.write("Each branch that is merged needs this file: lakeFS asks nobody for one without it.")
        else:
            self.stdout.write(webhook_file(region, options["url"], written))
        if not clear:
            self.stderr.write("Before you commit the file: without this, lakeFS runs no hooks of these events.")
            self.stderr.write(f"The lakeFS of {region} needs in its environment: {SECRET_VARIABLE}={secret}")
