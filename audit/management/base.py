"""What commands share: who acts, and how errors are told."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.errors import LakeMirrorError

ACTOR = "system:command-line"


class PlainCommand(BaseCommand):
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
