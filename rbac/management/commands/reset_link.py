"""`manage.py reset_link USER`: a link by which somebody chooses a new password, once."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

from django.core.management.base import CommandParser

from deployment import config
from rbac.management.base import ACTOR, AccessCommand, find_user
from rbac.signin import passwords


class Command(AccessCommand):
    help = "Create a link with which a user sets a new password. It works once, within a day."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", metavar="USER")
        parser.add_argument("--url", default="", help="address of LakeMirror, such as https://lakemirror.example.com")
        parser.add_argument("--reason", default="", help="recorded in the audit log")

    def run(self, **options: Any) -> None:
        link = passwords.reset_link_create(actor=ACTOR, user=find_user(options["username"]), reason=options["reason"])
        self.stdout.write(urljoin(options["url"] or _site(), link.path))
        self.stdout.write(f"Works once, until {link.expires_at:%Y-%m-%d %H:%M} UTC. It is not shown again.")


def _site() -> str:
    """Where people find this LakeMirror, as far as the configuration tells: its own address, its first name, this
    machine."""
    settings = config.current()
    if settings.notifications.site_url:
        return settings.notifications.site_url
    names = [name for name in settings.web.allowed_hosts if not name.startswith((".", "*"))]
    return f"https://{names[0]}" if names else f"http://localhost:{settings.listen_address.rpartition(':')[2]}"
