"""The books come back from a backup: of what was deleted since they know nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.apps import apps
from django.db import connection, models, transaction

from mirroring.sweep.deletion_mark import forget_compared
from mirrors.models import Promotion

if TYPE_CHECKING:
    from tests.promise.world import World

APPS = ("jobs", "installations", "mirrors")


def tables_of_mirrors() -> list[type[models.Model]]:
    """All that is known of mirrors."""
    return [model for app in APPS for model in apps.get_app_config(app).get_models()]


@contextmanager
def forgotten(world: World) -> Iterator[None]:
    """What the engine does within it knows no more in the end; what it has deleted is deleted. No process goes on."""
    truth, known = world.truth, (set(world.truth.found), set(world.truth.read_wrong))
    deleted = len(world.deleted)
    with _restored():
        yield
    truth.found, truth.read_wrong = known
    truth.found.update(world.deleted[deleted:])
    truth.note_change()
    last = Promotion.objects.order_by("pk").last()
    world.reader.blame_from(last.pk if last else 0)
    forget_compared()


@contextmanager
def _restored() -> Iterator[None]:
    """The tables, and the numbers that rows get next, are as they were."""
    tables = [model._meta.db_table for model in tables_of_mirrors()]
    if connection.vendor == "sqlite":
        tables.append("sqlite_sequence")
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"CREATE TEMP TABLE backup_{table} AS SELECT * FROM {table}")
        try:
            yield
        finally:
            with transaction.atomic():
                for table in tables:
                    cursor.execute(f"DELETE FROM {table}")
                for table in tables:
                    cursor.execute(f"INSERT INTO {table} SELECT * FROM backup_{table}")
            for table in tables:
                cursor.execute(f"DROP TABLE backup_{table}")
