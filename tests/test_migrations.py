"""Two neighbouring versions work on one database: what a migration does must leave the version before able to work."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db.migrations.operations import (
    AddField,
    AlterModelTable,
    DeleteModel,
    RemoveField,
    RenameField,
    RenameModel,
)
from django.db.migrations.operations.base import Operation
from django.db.models import Field, ManyToManyField
from django.db.models.fields import NOT_PROVIDED

ROOT = Path(__file__).resolve().parent.parent
APPS = ("audit", "jobs", "rbac", "installations", "mirrors", "exports", "replication", "notifications")
RENAMES = (RenameField, RenameModel, AlterModelTable)
REMOVALS = (RemoveField, DeleteModel)


def later() -> list[str]:
    """Every migration after an app's first, as a module's name."""
    paths = (path for app in APPS for path in (ROOT / app / "migrations").glob("[0-9]*.py"))
    return sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths if "0001" not in path.name)


def fills_itself(field: Field) -> bool:
    """Whether the database has a value for a row of which the writer doesn't know this column."""
    return field.null or field.db_default is not NOT_PROVIDED or isinstance(field, ManyToManyField)


def problems(operations: list[Operation]) -> Iterator[str]:
    """What the version before would stumble over."""
    removes = any(isinstance(one, REMOVALS) for one in operations)
    for one in operations:
        if isinstance(one, RENAMES):
            yield f"{one.describe()}: add, fill, and remove in a later version"
        elif isinstance(one, AddField) and not fills_itself(one.field):
            yield f"{one.describe()}: give it a db_default, or let it be null"
        elif removes and not isinstance(one, REMOVALS):
            yield f"{one.describe()}: what is removed has a migration of its own, a version after its last use"


@pytest.mark.parametrize("name", [*later(), "none"])
def test_the_version_before_works_on_the_new_tables(name: str) -> None:
    if name != "none":
        assert list(problems(importlib.import_module(name).Migration.operations)) == []


def test_what_would_break_it_is_found() -> None:
    from django.db.models import CharField

    plain, filled = CharField(max_length=8), CharField(max_length=8, db_default="")
    assert list(problems([AddField("mirror", "note", filled), AddField("mirror", "more", CharField(null=True))])) == []
    assert list(problems([RemoveField("mirror", "note")])) == []
    for bad in (
        [AddField("mirror", "note", plain)],
        [RenameField("mirror", "note", "remark")],
        [AddField("mirror", "note", filled), RemoveField("mirror", "more")],
    ):
        assert len(list(problems(bad))) == 1
