"""`manage.py demo_setup`: mirror the demo's repository, so that a newcomer sees commits arrive."""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.errors import Conflict, LakeMirrorError, NotFound
from mirrors import services


class Command(BaseCommand):
    help = "Make the demo's mirror: lake-eu of lake, from us-east-1 in eu-west-1. Waits until both regions answer."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--actor", default="admin", help="the user who makes it")
        parser.add_argument("--seconds", type=float, default=60, help="how long to wait for the regions")

    def handle(self, *args: Any, **options: Any) -> None:
        actor = get_user_model().objects.filter(username=options["actor"]).first()
        if actor is None:
            raise CommandError(f"there is no user {options['actor']}: run manage.py ensure_admin")
        try:
            _make(actor, time.monotonic() + options["seconds"])
        except Conflict:
            self.stdout.write("the mirror lake-eu exists already")
        except LakeMirrorError as error:
            raise CommandError(str(error)) from error
        else:
            self.stdout.write("made the mirror lake-eu of lake: s3://lake-eu-west-1/lake in eu-west-1")


def _make(actor: Any, deadline: float) -> None:
    """Create it; the regions may still be starting, so try again until the deadline."""
    while True:
        try:
            services.mirror_create(
                actor=actor,
                source_repository="lake",
                source_region="us-east-1",
                name="lake-eu",
                region="eu-west-1",
                storage_namespace="s3://lake-eu-west-1/lake",
            )
            return
        except LakeMirrorError as error:
            if not (error.retryable or isinstance(error, NotFound)) or time.monotonic() > deadline:
                raise
            time.sleep(0.25)
