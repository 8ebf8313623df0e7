"""The rows of the small company, made once and copied from then on, each time as if from this moment on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.db import connection
from django.db.models import Model

from jobs.models import Duty
from mirrors.models import Mirror, Repository
from mirrors.queries.metarange_cache import remembered

IN_SECONDS = ("creation_date", "pinned_creation_date")
"""Columns of times that are numbers."""

Company = dict[str, Mirror]


@dataclass
class Made:
    """All rows, and the metaranges that were read for them, as of a moment."""

    now: datetime
    rows: list[list[Model]]
    read: dict[str, Any]


_made: list[Made] = []


def company(now: datetime, make: Callable[[datetime], Company]) -> Company:
    """The mirrors by name, of tables that are empty. PostgreSQL counts keys by itself: there, they are always made."""
    if connection.vendor != "sqlite" or Repository.objects.exists() or Duty.objects.exists():
        return make(now)
    if _made:
        return _copy(_made[0], now)
    known = dict(remembered()._metaranges)
    made = make(now)
    read = {key: found for key, (found, _) in remembered()._metaranges.items() if key not in known}
    _made.append(Made(now, [list(model._base_manager.all()) for model in _models()], read))
    return made


def _models() -> list[type[Model]]:
    return [model for app in ("mirrors", "jobs") for model in apps.get_app_config(app).get_models()]


def _copy(made: Made, now: datetime) -> Company:
    """Whole seconds later, so that numbers of seconds and times stay as far apart as they were."""
    seconds = int((now - made.now).total_seconds())
    rows = [[_later(row, seconds) for row in found] for found in made.rows]
    for model, found in zip(_models(), rows, strict=True):
        model._base_manager.bulk_create(found)
    for key, found in made.read.items():
        remembered().put(key, found)
    sources = {row.pk: row for found in rows for row in found if isinstance(row, Repository)}
    mirrors = [row for found in rows for row in found if isinstance(row, Mirror)]
    for mirror in mirrors:
        mirror.source = sources[mirror.source_id]
    return {mirror.name: mirror for mirror in mirrors}


def _later(row: Model, seconds: int) -> Model:
    """A copy of a row, with each of its times so much later."""
    values = {}
    for field in row._meta.concrete_fields:
        value = getattr(row, field.attname)
        if isinstance(value, datetime):
            value += timedelta(seconds=seconds)
        elif field.attname in IN_SECONDS and value:
            value += seconds
        values[field.attname] = copy.copy(value)
    return type(row)(**values)
