"""Fields of a JSON file that somebody may have changed: read with their type and bounds. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from core.errors import Invalid


def object_of(data: bytes, what: str) -> Mapping[str, Any]:
    """The JSON object in some bytes; `what` names them. Raises Invalid."""
    try:
        body = json.loads(data)
    except ValueError as error:
        raise Invalid(f"{what} is damaged: it is not JSON") from error
    if not isinstance(body, dict):
        raise Invalid(f"{what} is damaged: it is not a JSON object")
    return body


def field_of(body: Mapping[str, Any], name: str, kind: type) -> Any:
    """A field that has to be of this very type. Raises Invalid."""
    value = body.get(name)
    if type(value) is not kind:
        raise Invalid(f"the field '{name}' is missing or damaged")
    return value


def text_of(body: Mapping[str, Any], name: str, most: int) -> str:
    """A text of at most so many characters, without NUL. Raises Invalid."""
    value: str = field_of(body, name, str)
    if len(value) > most or "\x00" in value:
        raise Invalid(f"the field '{name}' is damaged")
    return value


def texts_of(body: Mapping[str, Any], name: str, most: int) -> list[str]:
    """A list of such texts. Raises Invalid."""
    values: list[str] = field_of(body, name, list)
    return [text_of({name: value}, name, most) for value in values]


def choice_of(body: Mapping[str, Any], name: str, known: Sequence[str]) -> str:
    """One of the known words. Raises Invalid."""
    value = text_of(body, name, 64)
    if value not in known:
        raise Invalid(f"the field '{name}' is damaged: '{value}' is not one of {', '.join(known)}")
    return value


def number_of(body: Mapping[str, Any], name: str) -> int:
    """A whole number from 0 that a database can hold. Raises Invalid."""
    value: int = field_of(body, name, int)
    if not 0 <= value < 2**63:
        raise Invalid(f"the field '{name}' is damaged")
    return value


def number_within(body: Mapping[str, Any], name: str, least: int, most: int) -> int:
    """A whole number within bounds, both included. Raises Invalid."""
    value = number_of(body, name)
    if not least <= value <= most:
        raise Invalid(f"the field '{name}' is damaged: {value} is not within {least} and {most}")
    return value


def limit_of(body: Mapping[str, Any], name: str, least: int, most: int) -> int | None:
    """The same, or None where there is none. Raises Invalid."""
    return None if body.get(name) is None else number_within(body, name, least, most)


def share_of(body: Mapping[str, Any], name: str) -> float:
    """A share: more than 0, at most 1. Raises Invalid."""
    value: float = field_of(body, name, float)
    if not 0 < value <= 1:
        raise Invalid(f"the field '{name}' is damaged: {value} is not a share")
    return value


def moment_of(body: Mapping[str, Any], name: str) -> datetime:
    """A moment, in UTC. Raises Invalid."""
    try:
        return datetime.fromisoformat(field_of(body, name, str)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Invalid(f"the field '{name}' is not a time") from error
