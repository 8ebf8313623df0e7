"""`manage.py demo_setup`: mirror and export the demo's repositories, and copy a bucket, so that a newcomer sees things
arrive."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.errors import Conflict, LakeMirrorError, NotFound
from core.replicating.wishes import RuleWish, TargetWish
from exports.services import exports
from mirrors.services import mirrors
from replication.services import rules


class Wanted(NamedTuple):
    """A mirror of the demo."""

    name: str
    source: str
    source_region: str
    region: str
    object_replication: str = "native"

    @property
    def namespace(self) -> str:
        """Where the demo's replication brings the source's objects."""
        return f"s3://lake-{self.region}/{self.source}"


class WantedExport(NamedTuple):
    """An export of the demo, from the branch main."""

    repository: str
    region: str
    wish: exports.Wish
    description: str


MIRRORS = (
    Wanted("lake-eu", "lake", "us-east-1", "eu-west-1"),
    Wanted("lake-ap", "lake", "us-east-1", "ap-southeast-2"),
    Wanted("orders-us", "orders", "eu-west-1", "us-east-1", "managed"),
)
DAYS = r".*/date=\d+-\d+-\d+/"
EXPORTS = (
    WantedExport(
        "lake",
        "us-east-1",
        exports.Wish("s3://company-bucket/latest", "s3://company-bucket/states", (DAYS,), continuous=True),
        "it follows each commit",
    ),
    WantedExport(
        "orders",
        "eu-west-1",
        exports.Wish("s3://partner-bucket/orders", "s3://partner-bucket/states", (DAYS,), continuous=True),
        "it fails, because that bucket denies writes. To allow them: "
        ".venv/bin/python -m sandbox ctl allow partner-bucket; then click Repair",
    ),
)


RULE = RuleWish(
    "company-copies",
    "us-east-1",
    "s3://company-bucket/latest",
    (
        TargetWish("eu-west-1", "s3://company-bucket/copies"),
        TargetWish("ap-southeast-2", "s3://partner-bucket/orders"),
    ),
    scan_every=60,
)
"""It copies what the first export writes; its second target denies writes, as that of the second export."""


class Command(BaseCommand):
    help = "Create the demo's mirrors, exports and replication rule."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--actor", default="admin", help="the user on whose behalf")
        parser.add_argument("--seconds", type=float, default=60, help="how long to wait for the regions")

    def handle(self, *args: Any, **options: Any) -> None:
        actor = get_user_model().objects.filter(username=options["actor"]).first()
        if actor is None:
            raise CommandError(f"there is no user {options['actor']}: run manage.py ensure_admin")
        deadline = time.monotonic() + options["seconds"]
        for wanted in MIRRORS:
            self.stdout.write(_mirrored(actor, wanted, deadline))
        for wanted_export in EXPORTS:
            self.stdout.write(_exported(actor, wanted_export, deadline))
        self.stdout.write(_copied(actor, deadline))


def _mirrored(actor: Any, wanted: Wanted, deadline: float) -> str:
    """Make a mirror, and say so."""

    def make() -> None:
        mirrors.mirror_create(
            actor=actor,
            source_repository=wanted.source,
            source_region=wanted.source_region,
            name=wanted.name,
            region=wanted.region,
            storage_namespace=wanted.namespace,
            settings={"object_replication": wanted.object_replication},
        )

    try:
        _once_there(make, deadline)
    except Conflict:
        return f"mirror {wanted.name} exists already"
    return f"created mirror {wanted.name} of {wanted.source} ({wanted.source_region}) in {wanted.region}"


def _exported(actor: Any, wanted: WantedExport, deadline: float) -> str:
    """Make an export, and say so."""

    def make() -> None:
        exports.export_set(
            actor=actor, region=wanted.region, repository=wanted.repository, branch="main", wish=wanted.wish
        )

    _once_there(make, deadline)
    return f"created export of {wanted.repository}/main ({wanted.region}) to {wanted.wish.path}: {wanted.description}"


def _copied(actor: Any, deadline: float) -> str:
    """Make the rule, and say so."""
    try:
        _once_there(lambda: rules.rule_create(actor=actor, wish=RULE), deadline)
    except Conflict as error:
        return f"rule {RULE.name} is not created: {error.message}"
    return f"created rule {RULE.name}, which copies {RULE.uri} ({RULE.region}) to {len(RULE.targets)} regions"


def _once_there(make: Callable[[], None], deadline: float) -> None:
    """The regions may still be starting, so try again until the deadline. Raises Conflict and CommandError."""
    while True:
        try:
            make()
            return
        except Conflict:
            raise
        except LakeMirrorError as error:
            if not (error.retryable or isinstance(error, NotFound)) or time.monotonic() > deadline:
                raise CommandError(str(error)) from error
            time.sleep(0.25)
