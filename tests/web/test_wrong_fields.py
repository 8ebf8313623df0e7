"""Who sends a wrong value is told which field it is in: of every body, parameter and header of the API's document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.db import transaction
from django.test import Client

from core.errors import Invalid
from tests.documented import strict
from tests.web.api_calls import OPERATIONS, authorized
from web.parsing import require_text

pytestmark = pytest.mark.django_db

HEADERS = {"Idempotency-Key": "with blanks", "If-Match": "no quotes"}
GOOD: dict[str, Any] = {
    "action": "fs:ReadRepository",
    "statement": [{"effect": "allow", "action": ["fs:ReadRepository"], "resource": "*"}],
}
"""What is looked at more closely than its type tells."""
_EMPTY: dict[str, Any] = {"string": "x", "integer": 1, "number": 0.5, "boolean": True, "array": [], "object": {}}


def schema_of(shape: dict[str, Any]) -> dict[str, Any]:
    """A shape, also one that the document names."""
    named: dict[str, Any] = strict()["components"]["schemas"].get(shape.get("$ref", "").rpartition("/")[2], shape)
    return named


def types_of(shape: dict[str, Any]) -> set[str]:
    """What JSON types a field may have."""
    if "oneOf" in shape:
        return {kind for one in shape["oneOf"] for kind in types_of(one)}
    kinds = shape.get("type", [])
    return {kinds} if isinstance(kinds, str) else set(kinds)


def wrong(shape: dict[str, Any]) -> Any:
    """A value of a type that the field has not: a whole number can't pass for text, nor a list for an object."""
    kinds = types_of(shape)
    return {"an": "object"} if kinds - {"object"} or not kinds else ["a list"]


def right(shape: dict[str, Any]) -> Any:
    """A value that the field may have, as far as its type goes."""
    if "enum" in shape:
        return shape["enum"][0]
    if shape.get("pattern", "").startswith("^[0-9a-f]"):
        return "0" * 64
    if shape.get("format") == "date-time":
        return "2026-11-25T12:00:00Z"
    kind = min(types_of(shape) - {"null"}, default="string")
    if kind == "array":
        return [right(schema_of(shape["items"]))]
    if kind == "object":
        fields = shape.get("properties", {})
        return {name: right(schema_of(fields[name])) for name in shape.get("required", ())}
    return _EMPTY[kind]


def shapes() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each call that has a body, with good values in the fields that have to be there, and with all fields' shapes."""
    for label, operation in OPERATIONS.items():
        content = operation.definition.raw.get("requestBody", {}).get("content", {})
        shape = schema_of(content.get("application/json", {}).get("schema", {}))
        fields = {name: schema_of(one) for name, one in shape.get("properties", {}).items()}
        if content:
            yield label, {name: GOOD.get(name) or right(fields[name]) for name in shape.get("required", ())}, fields


def bodies() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each body's each field that has a type, with a wrong value in it."""
    for label, needed, fields in shapes():
        for name, one in fields.items():
            if types_of(one):
                yield label, name, needed | {name: wrong(one)}


def parameters(place: str) -> Iterator[tuple[str, str]]:
    """Each parameter there that has a type or a choice, with a value that it can't have; texts may be anything."""
    for label, operation in OPERATIONS.items():
        for one in operation.definition.raw.get("parameters", ()):
            shape = one["schema"].get("items", one["schema"])
            if one["in"] == place and (place == "header" or types_of(shape) != {"string"} or "enum" in shape):
                yield label, one["name"]


def refused(owner: Client, real: dict[str, Any], label: str, *, query: str = "", body: bytes = b"", **more: str) -> Any:
    """The 400 that a call is answered with; what it does is undone."""
    method, _, path = label.partition(" ")
    headers = authorized(label) | more
    if "/jobs/" in path:
        real = real | {"job": f"validation-{real['job']}"}
    with transaction.atomic():
        answer = owner.generic(
            method, path.format(**real) + query, body, content_type="application/json", headers=headers
        )
        transaction.set_rollback(True)
    return (
        answer.json() if answer.status_code == 400 else {"message": f"{answer.status_code}: {answer.content[:300]!r}"}
    )


def unnamed(told: list[tuple[str, str, Any]]) -> Iterator[Any]:
    """Answers that don't name the field, beginning with it or what is in it."""
    for label, name, answer in told:
        if answer.get("field", "").partition(".")[0] != name or name not in answer["message"]:
            yield label, name, answer


def test_a_wrong_type_in_a_body_is_told_by_its_field(owner_there: Client, real: dict[str, Any]) -> None:
    cases = list(bodies())
    assert len(cases) > 100
    told = [
        (label, name, refused(owner_there, real, label, body=json.dumps(body).encode())) for label, name, body in cases
    ]
    assert not list(unnamed(told))


def test_a_field_that_is_unknown_is_told_by_its_name(owner_there: Client, real: dict[str, Any]) -> None:
    told = [
        (label, "nosuch", refused(owner_there, real, label, body=json.dumps(needed | {"nosuch": 1}).encode()))
        for label, needed, fields in shapes()
        if fields
    ]
    assert not list(unnamed(told))


@pytest.mark.parametrize("value", ["nosuch", "%00"])
def test_a_wrong_query_parameter_is_told_by_its_name(owner_there: Client, real: dict[str, Any], value: str) -> None:
    cases = list(parameters("query"))
    assert len(cases) > 40
    told = [(label, name, refused(owner_there, real, label, query=f"?{name}={value}")) for label, name in cases]
    assert not list(unnamed(told))


def test_a_wrong_header_is_told_by_its_name(owner_there: Client, real: dict[str, Any]) -> None:
    cases = list(parameters("header"))
    assert len(cases) > 30
    good = {label: json.dumps(needed).encode() for label, needed, _ in shapes()}
    told = [
        (label, name, refused(owner_there, real, label, body=good.get(label, b""), **{name: HEADERS[name]}))
        for label, name in cases
    ]
    assert not list(unnamed(told))


def test_two_wrong_fields_are_both_told(owner_there: Client, real: dict[str, Any]) -> None:
    body = {"commits": ["x", "0" * 64, "y"], "reason": 7 * "r" * 1000}
    told = refused(owner_there, real, _waive(), body=json.dumps(body).encode())
    assert told["field"] == "commits.0"
    assert [one["field"] for one in told["errors"]] == ["commits.0", "commits.2", "reason"]
    assert all(one["message"] in told["message"] for one in told["errors"])


def test_a_body_that_is_no_object_has_no_field_to_name(owner_there: Client, real: dict[str, Any]) -> None:
    assert "field" not in refused(owner_there, real, _waive(), body=b"[1]")
    assert "field" not in refused(owner_there, real, _waive(), body=b"{")


def test_a_text_that_no_database_takes_is_told_by_its_path(owner_there: Client, real: dict[str, Any]) -> None:
    told = refused(owner_there, real, _waive(), body=b'{"commits": ["a", "b\\u0000"], "reason": "r"}')
    assert told == {"message": "commits.1: a text in the body contains a NUL character", "field": "commits.1"}
    for value in ({"a": {"\0": 1}}, {"a": {"b\ud800": ["c"]}}):
        with pytest.raises(Invalid) as caught:
            require_text(value)
        assert caught.value.field == "a"
    told = refused(owner_there, real, "GET /service/replication/v1/mirrors", query=f"?source={quote(chr(0))}")
    assert told["field"] == "source"


def _waive() -> str:
    return next(label for label in OPERATIONS if label.startswith("POST") and label.endswith("/waivers"))
