"""`manage.py create_access_key NAME`: credentials for a program that acts for a user."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from rbac import services
from rbac.management.base import ACTOR, AccessCommand, find_user


class Command(AccessCommand):
    help = (
        "Create an access key and print its secret once. If you choose the id, the secret is read from "
        "LAKEMIRROR_SECRET_ACCESS_KEY, since everybody on the machine can read arguments."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--key-id", default="", help="an id of your choice")
        parser.add_argument("--description", default="")
        parser.add_argument("--days", type=int, help="days until it expires; default: never")

    def run(self, **options: Any) -> None:
        """Make the key and show it."""
        days = options["days"]
        if days is not None and not 0 < days <= 36500:
            raise CommandError("--days must be a number from 1 to 36500")
        issued = services.key_create(
            actor=ACTOR,
            user=find_user(options["username"]),
            description=options["description"],
            expires_at=timezone.now() + timedelta(days=days) if days else None,
            key_id=options["key_id"],
            secret=os.environ.get("LAKEMIRROR_SECRET_ACCESS_KEY", "") if options["key_id"] else "",
        )
        self.show_key(issued)
