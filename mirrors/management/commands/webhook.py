"""`manage.py webhook REGION URL`: the file that makes an installation's repositories tell of their changes."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import yaml
from django.core.management.base import CommandParser

from core.errors import Invalid
from core.webhooks import ACTION_FILE, lakefs_action
from lakemirror_site import config, wiring
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
        wiring.installation(options["region"])
        parts = urlsplit(options["url"])
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise Invalid(f"'{options['url']}' is no address: it begins with http:// or https://")
        url = f"{options['url'].rstrip('/')}/hooks/lakefs/{options['region']}"
        secret = config.current().hook_secret(options["region"])
        self.stdout.write(yaml.safe_dump(lakefs_action(url, str(secret)), sort_keys=False))
