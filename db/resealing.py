"""Rows with sealed secrets, sealed anew after the key was changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import models, transaction

from core.errors import Unreadable


def reseal(
    model: type[models.Model], column: str, noted: Callable[[Any], None]
) -> tuple[list[str], list[str], list[Unreadable]]:
    """Seal the secrets of each row with the key of now that the one before opens; gives the names in `column` that were
    done, those that were done already, and what can't be opened. `noted` writes the audit in the row's transaction. A
    row at a time, so that it may be broken off and begun again."""
    done, already, lost = list[str](), list[str](), list[Unreadable]()
    for name in model._default_manager.values_list(column, flat=True):
        try:
            (done if _reseal(model, {column: name}, noted) else already).append(name)
        except Unreadable as error:
            lost.append(error)
    return done, already, lost


def _reseal(model: type[models.Model], which: dict[str, str], noted: Callable[[Any], None]) -> bool:
    with transaction.atomic():
        row: Any = model._default_manager.select_for_update().filter(**which).first()
        if row is None:
            return False
        secrets = row.secrets()
        if row.is_of_now:
            return False
        row.put(row.wish, secrets)
        row.save(update_fields=["sealed"])
        noted(row)
        return True
