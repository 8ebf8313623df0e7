"""What the access commands share: who acts, how names are looked up, how errors are told."""

from __future__ import annotations

from getpass import getpass
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.errors import LakeMirrorError, NotFound
from rbac.credentials import IssuedKey
from rbac.models import User

ACTOR = "system:command-line"


class AccessCommand(BaseCommand):
    """A command whose expected errors are one line."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Run, turning an expected error into the command's own."""
        try:
            self.run(**options)
        except LakeMirrorError as error:
            raise CommandError(str(error)) from error

    def run(self, **options: Any) -> None:
        """What the command does."""
        raise NotImplementedError

    def show_key(self, issued: IssuedKey) -> None:
        """The one time that a secret is seen."""
        self.stdout.write(f"access key id:     {issued.key.key_id}")
        self.stdout.write(f"secret access key: {issued.secret}   (it is not shown again)")


def find_user(name: str) -> User:
    """The user of that name, else NotFound."""
    try:
        return User.objects.get_by_natural_key(name)
    except User.DoesNotExist as error:
        raise NotFound(f"there is no user '{name}'") from error


def ask_password(name: str) -> str:
    """A new password, typed twice at the terminal and not shown."""
    password = getpass(f"Password for {name}: ")
    if password != getpass("The same again: "):
        raise CommandError("the two passwords differ")
    return password
