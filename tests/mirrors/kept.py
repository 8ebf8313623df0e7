"""A deployment that came some way, made once and copied from then on: the way there is what takes the time."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.db.models import DateTimeField, ForeignKey, Model

from mirrors.queries.metaranges import remembered
from tests.mirrors.harness import Deployment

SECONDS = 20.0
"""A copy is never older: to its tests it is as if it had just been made."""
MOST = 8
"""So many are kept: tests of one module follow each other."""
OF_THE_TEST = {"mirrors_duty.subject", "mirrors_repository.creation_date"}
"""Columns that differ from test to test, besides keys and times."""

T = TypeVar("T")
Rows = list[list[tuple[Any, ...]]]


@dataclass
class Kept:
    """What was made in a deployment, on top of what, and when."""

    on: Any
    at: float
    given: Any
    rows: Rows
    standing: dict[str, Any]
    files: dict[Path, bytes]


_kept: dict[Any, Kept] = {}


def once(request: pytest.FixtureRequest, lm: Deployment, make: Callable[[], T]) -> T:
    """What `make` gives and does to a deployment; copied, if a test of this module with the same fixtures has just done
    it to an equal one. SQLite alone: what PostgreSQL does along the way is for PostgreSQL to show."""
    if connection.vendor != "sqlite" or lm.added:
        return make()
    key = (request.module.__name__, request.fixturename, frozenset(request.fixturenames))
    on, now = _outline(lm), time.monotonic()
    found = _kept.get(key)
    if found and found.on == on and now - found.at < SECONDS:
        _bring_back(lm, found)
        return copy.deepcopy(found.given)  # type: ignore[no-any-return]
    given = make()
    if len(_kept) >= MOST:
        _kept.clear()
    _kept[key] = Kept(on, now, given, _rows(), _standing(lm), _files(lm))
    return given


# --- rows ------------------------------------------------------------------------------------------------------------


@cache
def _models() -> list[type[Model]]:
    return [model for app in ("mirrors", "jobs") for model in apps.get_app_config(app).get_models()]


def _rows() -> Rows:
    """Of every table of mirrors and of duties."""
    with connection.cursor() as cursor:
        return [
            cursor.execute(f'SELECT {_columns(model)} FROM "{model._meta.db_table}"').fetchall() for model in _models()
        ]


@cache
def _columns(model: type[Model]) -> str:
    return ", ".join(f'"{field.column}"' for field in model._meta.concrete_fields)


def _put(rows: Rows) -> None:
    """Let the tables hold these rows, and no others."""
    with transaction.atomic(), connection.cursor() as cursor:
        for model, found in zip(_models(), rows, strict=True):
            table = model._meta.db_table
            cursor.execute(f'DELETE FROM "{table}"')
            if found:
                places = ", ".join("%s" for _ in found[0])
                cursor.executemany(f'INSERT INTO "{table}" ({_columns(model)}) VALUES ({places})', found)


# --- the deployment --------------------------------------------------------------------------------------------------


def _parts(lm: Deployment) -> dict[str, Any]:
    """What stands in for installations and stores."""
    return {name: getattr(lm, name) for name in ("us", "eu", "ap", "us_store", "eu_store", "ap_store", "lake")}


def _standing(lm: Deployment) -> dict[str, Any]:
    """All that the deployment's parts and this process's memory hold, where they hold each other by name."""
    parts = _parts(lm)
    memo = {id(part): _Named(name) for name, part in parts.items()}
    held = {name: vars(part) for name, part in parts.items()}
    return copy.deepcopy({"parts": held, "checked": lm.checked, "read": dict(remembered()._metaranges)}, memo)


class _Named(str):
    """Stands for a part of a deployment."""


def _files(lm: Deployment) -> dict[Path, bytes]:
    """The local cache's, the least recently used first."""
    folder = lm.local_cache.folder
    found = sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_mtime_ns)
    return {path.relative_to(folder): path.read_bytes() for path in found}


def _bring_back(lm: Deployment, kept: Kept) -> None:
    _put(kept.rows)
    for path, data in kept.files.items():
        lm.local_cache.put(path.name, data)
    standing = copy.deepcopy(kept.standing)
    parts = _parts(lm)
    for name, held in standing["parts"].items():
        vars(parts[name]).clear()
        vars(parts[name]).update({key: parts[one] if isinstance(one, _Named) else one for key, one in held.items()})
    lm.checked[:] = standing["checked"]
    remembered().clear()
    for key, (found, _) in standing["read"].items():
        remembered().put(key, found)


# --- whether two deployments are equal -------------------------------------------------------------------------------


def _outline(lm: Deployment) -> Any:
    """Equal for deployments in which the same has happened."""
    rows = [
        [tuple(row[place] for place in places) for row in found]
        for places, found in zip(_compared(), _rows(), strict=True)
    ]
    standing = _standing(lm)
    for region in ("us", "eu", "ap"):
        for repository in standing["parts"][region]["repositories"].values():
            repository.info = repository.info.id, repository.info.storage_namespace, repository.info.read_only
    return rows, standing, lm.small_checks, repr(lm.check_error)


@cache
def _compared() -> list[list[int]]:
    """The columns of each table that hold neither a key nor a time nor what is the test's own."""
    return [
        [
            place
            for place, field in enumerate(model._meta.concrete_fields)
            if not field.primary_key
            and not isinstance(field, DateTimeField | ForeignKey)
            and f"{model._meta.db_table}.{field.column}" not in OF_THE_TEST
        ]
        for model in _models()
    ]
