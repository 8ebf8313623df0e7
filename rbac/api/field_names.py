"""What is wrong, told by the names that the API's caller used: our tables and our readers of policies have others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import LakeMirrorError

_OF_STATEMENT = re.compile(r"(?:(.+) of )?statement (\d+)")


@contextmanager
def told_as_id(column: str) -> Iterator[None]:
    """An error that names the column names `id`, which the caller gave."""
    try:
        yield
    except LakeMirrorError as error:
        error.field = "id" if error.field == column else error.field
        raise


@contextmanager
def told_by_path() -> Iterator[None]:
    """An error of a policy names a field by its path in the body: `statement.1.action` is the action of the second."""
    try:
        yield
    except LakeMirrorError as error:
        if found := _OF_STATEMENT.fullmatch(error.field):
            name, number = found.groups()
            error.field = f"statement.{int(number) - 1}" + (f".{name}" if name else "")
        raise
