"""`manage.py adopt SOURCE MIRROR`: mirror into a read-only repository that exists already."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from mirrors.services import mirrors
from rbac.management.base import AccessCommand, find_user


class Command(AccessCommand):
    help = "Adopt a read-only repository, created by hand or by another tool, as the mirror of a source."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", help="the source's name")
        parser.add_argument("mirror", help="the name of the repository to adopt")
        parser.add_argument("--region", required=True, help="its region")
        parser.add_argument("--storage-namespace", required=True, help="its storage namespace, as a check")
        parser.add_argument("--source-region", default="", help="the source's region (default: this deployment's)")
        parser.add_argument("--actor", default="admin", help="the user on whose behalf")

    def run(self, **options: Any) -> None:
        """Check and take it over."""
        mirror = mirrors.mirror_create(
            actor=find_user(options["actor"]),
            source_repository=options["source"],
            source_region=options["source_region"],
            name=options["mirror"],
            region=options["region"],
            storage_namespace=options["storage_namespace"],
            adopt=True,
        )
        self.stdout.write(f"{mirror.name} in {mirror.region} is now the mirror of {mirror.source}")
