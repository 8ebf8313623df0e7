"""`manage.py demo_setup`: mirror the demo's repositories, so that a newcomer sees commits arrive."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.errors import Conflict, LakeMirrorError, NotFound
from mirrors import services


class Wanted(NamedTuple):
    """A mirror of the demo."""

    name: str
    source: str
    source_region: str
    region: str

    @property
    def namespace(self) -> str:
        """Where the demo's replication brings the source's objects."""
        return f"s3://lake-{self.region}/{self.source}"


MIRRORS = (
    Wanted("lake-eu", "lake", "us-east-1", "eu-west-1"),
    Wanted("lake-ap", "lake", "us-east-1", "ap-southeast-2"),
    Wanted("orders-us", "orders", "eu-west-1", "us-east-1"),
)


class Command(BaseCommand):
    help = "Make the demo's mirrors: two of lake, in two regions, and one of orders the other way round."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--actor", default="admin", help="the user who makes them")
        parser.add_argument("--seconds", type=float, default=60, help="how long to wait for the regions")

    def handle(self, *args: Any, **options: Any) -> None:
        actor = get_user_model().objects.filter(username=options["actor"]).first()
        if actor is None:
            raise CommandError(f"there is no user {options['actor']}: run manage.py ensure_admin")
        deadline = time.monotonic() + options["seconds"]
        for wanted in MIRRORS:
            self.stdout.write(_made(actor, wanted, deadline))


def _made(actor: Any, wanted: Wanted, deadline: float) -> str:
    """Make one, and say so."""
    try:
        _make(actor, wanted, deadline)
    except Conflict:
        return f"the mirror {wanted.name} exists already"
    except LakeMirrorError as error:
        raise CommandError(str(error)) from error
    return f"made the mirror {wanted.name} of {wanted.source} ({wanted.source_region}) in {wanted.region}"


def _make(actor: Any, wanted: Wanted, deadline: float) -> None:
    """Create it; the regions may still be starting, so try again until the deadline."""
    while True:
        try:
            services.mirror_create(
                actor=actor,
                source_repository=wanted.source,
                source_region=wanted.source_region,
                name=wanted.name,
                region=wanted.region,
                storage_namespace=wanted.namespace,
            )
            return
        except LakeMirrorError as error:
            if not (error.retryable or isinstance(error, NotFound)) or time.monotonic() > deadline:
                raise
            time.sleep(0.25)
