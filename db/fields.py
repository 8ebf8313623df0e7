"""Columns that give back exactly what was put in, on every database: PostgreSQL stores no NUL characters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.db import models

_ESCAPED = {"\x00": "\x1a0", "\x1a": "\x1a1"}
_PLAIN = {escaped: plain for plain, escaped in _ESCAPED.items()}


def escape(text: str) -> str:
    """Without NUL; `unescape` gives the same text again."""
    return re.sub("[\x00\x1a]", lambda match: _ESCAPED[match[0]], text)


def unescape(text: str) -> str:
    """What `escape` was given."""
    return re.sub("\x1a[01]", lambda match: _PLAIN[match[0]], text)


class ExactTextField(models.TextField):
    """Text in which anything may stand, as in a commit's message."""

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        return escape(value) if isinstance(value, str) else value

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Back from the column."""
        return unescape(value) if isinstance(value, str) else value

    def deconstruct(self) -> Any:
        """The column is an ordinary one: nothing to migrate."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.TextField", args, kwargs


class ExactJSONField(models.JSONField):
    """Lists and mappings of texts in which anything may stand, as in a commit's metadata."""

    def get_prep_value(self, value: Any) -> Any:
        return _each_text(super().get_prep_value(value), escape)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Back from the column."""
        return _each_text(super().from_db_value(value, expression, connection), unescape)

    def deconstruct(self) -> Any:
        """The column is an ordinary one: nothing to migrate."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """With each text in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {_each_text(key, change): _each_text(one, change) for key, one in value.items()}
    return [_each_text(one, change) for one in value] if isinstance(value, list | tuple) else value
