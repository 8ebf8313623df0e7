"""What the access commands share: who acts, how names are looked up, how errors are told."""

from __future__ import annotations

from getpass import getpass

from django.core.management.base import CommandError

from audit.management.base import ACTOR as ACTOR
from audit.management.base import PlainCommand
from core.errors import NotFound
from rbac.key_secrets import IssuedKey
from rbac.models import User


class AccessCommand(PlainCommand):
    """A command of access."""

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
    if password != getpass("Repeat password: "):
        raise CommandError("the two passwords differ")
    return password
