"""Reading requests: query parameters and JSON bodies, refused in lakeFS's words when they are wrong."""

from __future__ import annotations

import json
from typing import Any

from flask import request

from sandbox.lakefs.errors import invalid

PAGE = 100
LARGEST_PAGE = 1000
TYPES = {str: "string", bool: "boolean", int: "integer", dict: "object", list: "array"}


def text(name: str, *, required: bool = False, default: str = "") -> str:
    """A query parameter."""
    value = request.args.get(name)
    if required and value is None:
        raise invalid(f'parameter "{name}" in query has an error: value is required but missing')
    if required and not value:
        raise invalid(f'parameter "{name}" in query has an error: empty value is not allowed')
    return default if value is None else value


# What Go's strconv.ParseBool takes, and so lakeFS: SDKs send "True".
_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}


def flag(name: str, *, default: bool = False) -> bool:
    """A query parameter that is true or false."""
    value = request.args.get(name)
    if value is None:
        return default
    if value not in _TRUE | _FALSE:
        raise invalid(f'parameter "{name}" in query has an error: value {value}: an invalid boolean: invalid syntax')
    return value in _TRUE


def amount() -> int:
    """How many results a page holds; 0 and -1 mean the most that lakeFS gives."""
    value = request.args.get("amount", str(PAGE))
    try:
        number = int(value)
    except ValueError:
        raise invalid(
            f'parameter "amount" in query has an error: value {value}: an invalid integer: invalid syntax'
        ) from None
    if number > LARGEST_PAGE:
        raise invalid('parameter "amount" in query has an error: number must be at most 1000')
    return number if number > 0 else LARGEST_PAGE


class Body:
    """A JSON object that the schema `name` describes."""

    def __init__(self, name: str) -> None:
        self._schema = name
        raw = request.get_data()
        try:
            self._values = json.loads(raw)
        except ValueError as problem:
            raise invalid(f"request body has an error: failed to decode request body: {problem}") from problem
        if not isinstance(self._values, dict):
            raise self._wrong("", "value must be an object")

    def get(self, field: str, kind: type, default: Any = None) -> Any:
        """A field; without a default it is required. Raises a 400 that names the field."""
        value = self._values.get(field)
        if value is None:
            if default is None:
                raise self._wrong(field, f'property "{field}" is missing')
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._wrong(field, f"value must be {TYPES[kind]}")
        return value

    def texts(self, field: str) -> dict[str, str]:
        """A field that maps strings to strings; empty when absent."""
        values = self.get(field, dict, {})
        if not all(isinstance(value, str) for value in values.values()):
            raise self._wrong(field, "value must be a string")
        return dict(values)

    def optional_int(self, field: str) -> int | None:
        """A number or None."""
        return None if self._values.get(field) is None else self.get(field, int)

    def choice(self, field: str, *choices: str) -> str:
        """A field that must have one of these values."""
        value: str = self.get(field, str)
        if value not in choices:
            allowed = ",".join(f'"{choice}"' for choice in choices)
            raise self._wrong(field, f"value is not one of the allowed values [{allowed}]")
        return value

    def _wrong(self, field: str, problem: str) -> Exception:
        return invalid(
            f"request body has an error: doesn't match schema #/components/schemas/{self._schema}: "
            f'Error at "/{field}": {problem}'
        )
