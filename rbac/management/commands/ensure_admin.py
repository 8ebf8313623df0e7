"""`manage.py ensure_admin`: the built-in policies and groups, and somebody who may do everything."""

from __future__ import annotations

import os
import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from rbac import services
from rbac.management.base import ACTOR, AccessCommand, ask_password
from rbac.models import AccessKey, Group, User
from rbac.services import builtin


class Command(AccessCommand):
    help = (
        "Make the first administrator, unless there is one. Name and password from LAKEMIRROR_ADMIN_USERNAME and "
        "LAKEMIRROR_ADMIN_PASSWORD, else asked for at the terminal. Existing passwords are left alone."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--exists", action="store_true", help="only say yes or no: can an administrator act?")
        parser.add_argument(
            "--access-key",
            action="store_true",
            help="give them an access key too, if they have none that works; id and secret from "
            "LAKEMIRROR_ADMIN_ACCESS_KEY_ID and LAKEMIRROR_ADMIN_SECRET_ACCESS_KEY, else made up and printed",
        )

    def run(self, **options: Any) -> None:
        """Install what is built in, find or make the administrator, maybe their key."""
        if options["exists"]:
            self.stdout.write("yes" if administrators().exists() else "no")
            return
        user = self._administrator()
        if options["access_key"]:
            self._key(user)

    def _administrator(self) -> User:
        name = os.environ.get("LAKEMIRROR_ADMIN_USERNAME", "")
        first = administrators().first()
        if first and not name:
            builtin.install()
            self.stdout.write(f"administrator: {first.username} (existed already)")
            return first
        return self._ensure(name)

    def _ensure(self, name: str) -> User:
        """The named user as an administrator, made if there is none of that name."""
        user = User.objects.filter(username__iexact=name).first() if name else None
        is_new = user is None
        if user is None:
            name = name or _ask("Name of the first administrator [admin]: ") or "admin"
            password = os.environ.get("LAKEMIRROR_ADMIN_PASSWORD") or _asked_password(name)
        with transaction.atomic():
            builtin.install()
            user = user or services.user_create(actor=ACTOR, username=name, password=password)
            group = Group.objects.get(name=builtin.ADMINS)
            joined = services.group_add(actor=ACTOR, group=group, user=user, reason="ensure_admin")
        self.stdout.write(f"administrator: {user.username} ({_what_happened(is_new, joined)})")
        return user

    def _key(self, user: User) -> None:
        key_id = os.environ.get("LAKEMIRROR_ADMIN_ACCESS_KEY_ID", "")
        keys = AccessKey.objects.filter(user=user, disabled_at=None)
        old = (keys.filter(key_id=key_id) if key_id else keys).first()
        if old:
            self.stdout.write(f"access key id:     {old.key_id} (existed already; its secret is not stored)")
            return
        secret = os.environ.get("LAKEMIRROR_ADMIN_SECRET_ACCESS_KEY", "")
        self.show_key(services.key_create(actor=ACTOR, user=user, key_id=key_id, secret=secret))


def administrators() -> Any:
    """Active members of the administrators' group."""
    return User.objects.filter(is_active=True, rbac_groups__name=builtin.ADMINS).order_by("pk")


def _what_happened(is_new: bool, joined: bool) -> str:
    if is_new:
        return "new"
    return "existed already, and is an administrator now" if joined else "existed already"


def _ask(question: str) -> str:
    return input(question).strip() if sys.stdin.isatty() else ""


def _asked_password(name: str) -> str:
    if not sys.stdin.isatty():
        raise CommandError("nobody can sign in yet: set LAKEMIRROR_ADMIN_USERNAME and LAKEMIRROR_ADMIN_PASSWORD")
    return ask_password(name)
