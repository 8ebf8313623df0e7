"""`manage.py certificate MIRROR COMMIT`: what was proven of a commit at a mirror."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandParser

from core.errors import NotFound
from mirrors.models import Mirror
from mirrors.queries.certificates import certify
from rbac.management.base import AccessCommand


class Command(AccessCommand):
    help = "Print the certificate of a validated commit. The same facts always give the same digest."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("mirror", help="the mirror's name")
        parser.add_argument("commit", help="the commit id, in full")

    def run(self, **options: Any) -> None:
        """Gather the facts anew and print them."""
        mirror = Mirror.objects.live().select_related("source").filter(name=options["mirror"]).first()
        if mirror is None:
            raise NotFound(f"there is no mirror '{options['mirror']}'")
        commit = mirror.source.commits.filter(sha=options["commit"]).first()
        if commit is None:
            raise NotFound(f"there is no known commit '{options['commit']}' of {mirror.source}")
        self.stdout.write(json.dumps(certify(mirror, commit).document(), indent=1))
