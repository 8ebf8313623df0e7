"""How rows with names are checked and saved."""

from __future__ import annotations

from typing import TypeVar

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from core.errors import Conflict, Invalid, NotFound
from rbac.models import Group, Policy, User

Row = User | Group | Policy
_NAMED = {User: "username"}
"""Which column is a row's name, where that is not `name`."""
R = TypeVar("R", bound=Row)


def locked(row: R) -> R:
    """The row as it is now, nobody else's until the transaction ends. NotFound if it was removed meanwhile."""
    now = type(row).objects.select_for_update().filter(pk=row.pk).first()
    if now is None:
        raise NotFound(f"{row.arn.rpartition(':')[2].replace('/', ' ', 1)} was just deleted")
    return now


def check(row: Row) -> None:
    """Invalid names the first field that can't be as it is."""
    try:
        row.clean_fields()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise Invalid(" ".join(messages), field=field) from error


def save_new(row: Row, taken: str) -> None:
    """Insert a checked row. Conflict if somebody has the name, `taken` in words, also if they won a race."""
    check(row)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(taken, field=_NAMED.get(type(row), "name")) from error
