"""Seal the secrets of installations with the auth.encrypt.secret_key of now."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.text.phrases import count
from installations.models import OLD_KEY
from installations.services import rotate


class Command(BaseCommand):
    help = (
        "Seal the secrets of installations with the auth.encrypt.secret_key of now. The key before is taken from "
        f"{OLD_KEY} in the environment. May be broken off and begun again."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        done, already, lost = rotate()
        for region in done:
            self.stdout.write(f"{region}: sealed with the key of now")
        for region in already:
            self.stdout.write(f"{region}: was sealed with it already")
        for error in lost:
            self.stderr.write(str(error))
        if lost:
            hint = "" if os.environ.get(OLD_KEY) else f" ({OLD_KEY} is not set)"
            number = count(len(lost), "installation")
            raise CommandError(f"the secrets of {number} can't be opened{hint}; nothing of theirs was changed")
        self.stdout.write(f"done: {count(len(done) + len(already), 'installation')}")
