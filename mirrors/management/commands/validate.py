"""`manage.py validate MIRROR`: have what a mirror's heads name looked at again, from the bytes."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import CommandError, CommandParser

from core.errors import NotFound
from core.mirroring.object_check import Depth
from core.mirroring.rpo import in_words
from core.text.phrases import count
from mirrors.models import Mirror, Validation
from mirrors.services.validations import validation_ask
from rbac.management.base import AccessCommand, find_user

LOOK_SECONDS = 1.0


class Command(AccessCommand):
    help = "Have workers validate again everything that a commit, a branch's head or all heads of a mirror refer to."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("mirror", help="the mirror's name")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--commit", default="", help="a commit id, in full")
        which.add_argument("--branch", default="", help="a branch of the mirror: its head")
        which.add_argument("--all", action="store_true", help="the heads of all branches (the default)")
        parser.add_argument("--depth", choices=[depth.value for depth in Depth], help="default: the mirror's own")
        parser.add_argument(
            "--wait", action="store_true", help="wait until it is done; exit with 1 if it finds problems or is stopped"
        )
        parser.add_argument("--actor", default="admin", help="the user on whose behalf")

    def run(self, **options: Any) -> None:
        """Ask for it, and wait if that is wanted."""
        mirror = Mirror.objects.live().select_related("source").filter(name=options["mirror"]).first()
        if mirror is None:
            raise NotFound(f"there is no mirror '{options['mirror']}'")
        validation = validation_ask(
            actor=find_user(options["actor"]),
            mirror=mirror,
            commit=options["commit"],
            branch=options["branch"],
            depth=Depth(options["depth"]) if options["depth"] else None,
        )
        self.stdout.write(f"validation {validation.pk} of {mirror.name}, depth {validation.depth}: {validation.state}")
        if options["wait"]:
            self._wait(validation)

    def _wait(self, validation: Validation) -> None:
        line = ""
        while validation.ended_at is None:
            time.sleep(LOOK_SECONDS)
            self._read(validation)
            line = self._tell(validation, line)
        took = in_words((validation.ended_at - validation.asked_at).total_seconds())
        problems = count(validation.problems, "problem")
        self.stdout.write(
            f"{validation.state} after {took}: {count(validation.entries, 'entry', 'entries')}, {problems}"
        )
        if validation.problems:
            raise CommandError(f"{problems} found: see the mirror's page or the API")
        if validation.stopped_by:
            raise CommandError(f"{validation.stopped_by} stopped it: not everything was validated")

    def _read(self, validation: Validation) -> None:
        try:
            validation.refresh_from_db()
        except Validation.DoesNotExist:
            raise NotFound("the mirror has been deleted") from None

    def _tell(self, validation: Validation, before: str) -> str:
        """A line when there is something new."""
        line = f"{validation.state}: {validation.ranges_done:,} of {count(validation.ranges, 'range')}"
        line += f", {count(validation.problems, 'problem')}"
        line += f"; {validation.error}" if validation.error else ""
        if line != before and validation.ended_at is None:
            self.stdout.write(line)
        return line
