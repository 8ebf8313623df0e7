"""Seal the secrets of the database with the auth.encrypt.secret_key of now."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.text.phrases import count
from installations.models import OLD_KEY
from installations.services import Rotate, sealed


class Command(BaseCommand):
    help = (
        "Seal the secrets of installations and channels with the current auth.encrypt.secret_key. The previous key is "
        f"taken from {OLD_KEY} in the environment. May be interrupted and run again."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        failed = [problem for noun, rotate in sealed() if (problem := self._rotate(noun, rotate))]
        if failed:
            hint = "" if os.environ.get(OLD_KEY) else f" ({OLD_KEY} is not set)"
            raise CommandError(f"the secrets of {' and '.join(failed)} can't be opened{hint}; they were left unchanged")

    def _rotate(self, noun: str, rotate: Rotate) -> str:
        """How many of a kind can't be opened, in words; "" if all can."""
        done, already, lost = rotate()
        for name in done:
            self.stdout.write(f"{name}: sealed with the current key")
        for name in already:
            self.stdout.write(f"{name}: was already sealed with it")
        for error in lost:
            self.stderr.write(str(error))
        if lost:
            return count(len(lost), noun)
        self.stdout.write(f"done: {count(len(done) + len(already), noun)}")
        return ""
