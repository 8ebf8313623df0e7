"""`manage.py attach_policy POLICY`: give a policy to a user or a group; from a file, it is stored first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from core.access.policies import parse_json
from rbac import services
from rbac.management.base import ACTOR, AccessCommand, find_user
from rbac.models import Policy


class Command(AccessCommand):
    help = "Attach a policy to a user or a group."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("policy", help="the name of a policy, or a JSON file from which it is created first")
        holder = parser.add_mutually_exclusive_group(required=True)
        holder.add_argument("--user")
        holder.add_argument("--group")

    @transaction.atomic
    def run(self, **options: Any) -> None:
        """Store the policy if it is a file, then attach it."""
        path = Path(options["policy"])
        policy = _from_file(path) if path.suffix == ".json" else services.policy_find(options["policy"])
        user = find_user(options["user"]) if options["user"] else None
        group = services.group_find(options["group"]) if options["group"] else None
        new = services.policy_attach(actor=ACTOR, policy=policy, user=user, group=group)
        holder = options["user"] or options["group"]
        self.stdout.write(f"{policy.name}: {'attached to' if new else 'was already attached to'} {holder}")


def _from_file(path: Path) -> Policy:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} can't be read: {error}") from error
    parse_json(text)
    return services.policy_put(actor=ACTOR, document=json.loads(text))
