"""`manage.py found_mirrors`: the tables, and mirrors of the fleet's repositories in this deployment's own region."""

from __future__ import annotations

import os
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from deployment import config
from mirrors.services.mirrors import mirror_create
from rbac.management.commands.ensure_admin import administrators
from tests.fleet import WORLD
from tests.fleet.wire import Remote


class Command(BaseCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        call_command("ensure_admin", verbosity=0)
        actor = administrators().get()
        for one in Remote(os.environ[WORLD], "world").mirrors():
            if one["region"] == config.current().region:
                mirror_create(
                    actor=actor,
                    source_repository=one["name"],
                    source_region=one["source"],
                    name=one["mirror"],
                    region=one["region"],
                    storage_namespace=one["mirrored"],
                    settings=one["settings"],
                )
