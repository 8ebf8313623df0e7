"""`manage.py create_user NAME`: a person or a service that may sign in."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from rbac import services
from rbac.management.base import ACTOR, AccessCommand, ask_password


class Command(AccessCommand):
    help = "Create a user. The password is read from LAKEMIRROR_USER_PASSWORD or the terminal, never from an argument."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--email", default="")
        parser.add_argument("--group", action="append", default=[], help="a group to join; may be repeated")
        parser.add_argument("--no-password", action="store_true", help="a user with access keys only")

    @transaction.atomic
    def run(self, **options: Any) -> None:
        """Make the user and let it join its groups: all or nothing."""
        name = options["username"]
        groups = [services.group_find(group) for group in options["group"]]
        password = "" if options["no_password"] else _password(name)
        user = services.user_create(actor=ACTOR, username=name, password=password, email=options["email"])
        for group in groups:
            services.group_add(actor=ACTOR, group=group, user=user)
        self.stdout.write(f"user: {user.username}" + ("" if password else " (no password: access keys only)"))


def _password(name: str) -> str:
    given = os.environ.get("LAKEMIRROR_USER_PASSWORD", "")
    return given or (ask_password(name) if sys.stdin.isatty() else "")
