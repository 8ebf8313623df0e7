"""`manage.py check_config [FILE]`: is this configuration usable? One line either way."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from deployment import config


class Command(BaseCommand):
    help = "Check a configuration file under this environment; names the first field that is missing or wrong."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", help="a YAML file; default: the configuration in use here")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["file"]
        try:
            settings = config.load(name) if name else config.current()
        except config.ConfigError as error:
            raise CommandError(f"configuration: {error}", returncode=2) from None
        regions = ", ".join(settings.regions) or "none yet"
        alone = ", ".join(settings.replication_stores)
        unused = ", ".join(config.unused_in_use(os.environ | ({"LAKEMIRROR_CONFIG": name} if name else {})))
        self.stdout.write(
            f"{name or 'the configuration'} is complete: region {settings.region}, endpoints for {regions}"
            + (f"; without a lakeFS: {alone}" if alone else "")
            + (f"; accepted, not used: {unused}" if unused else "")
        )
