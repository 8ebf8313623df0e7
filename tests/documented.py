"""Every answer that a test gets from the API is compared with what the API's document says about it."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from typing import Any
from unittest import mock

from django.http import HttpResponse
from django.test import Client
from jsonschema import Draft202012Validator

from web.openapi import JSON, PREFIX, document

_HANDLE = Client.request
ACCESS = ("/api/v1/auth/", "/api/v1/user")


@cache
def strict() -> dict[str, Any]:
    """The document, with shapes that hold nothing but what they name."""
    made = deepcopy(document())
    for name, shape in made["components"]["schemas"].items():
        if name != "Failure" and "properties" in shape:
            shape.setdefault("additionalProperties", False)
    return made


def plain(answer: HttpResponse) -> bytes:
    """An answer's body as it was before it was compressed."""
    return gzip.decompress(answer.content) if answer.get("Content-Encoding") == "gzip" else answer.content


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Paths as patterns, those with the fewest parameters first."""
    paths = sorted(strict()["paths"], key=lambda path: path.count("{"))
    return [(re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))), path) for path in paths]


def call_at(method: str, address: str) -> dict[str, Any] | None:
    """What the document says about a method at an address."""
    path = next((path for pattern, path in _patterns() if pattern.fullmatch(address)), None)
    found: dict[str, Any] | None = strict()["paths"][path].get(method.lower()) if path else None
    return found


def problems(method: str, address: str, answer: HttpResponse) -> Iterator[str]:
    """In what an answer differs from the document; what has no operation there is no concern of it."""
    call = call_at(method, address)
    if call is None:
        return
    told = call["responses"].get(str(answer.status_code))
    if told is None:
        yield f"{method} {address}: the status {answer.status_code} is not documented: {answer.content[:300]!r}"
        return
    kind = answer.get("Content-Type", "").partition(";")[0]
    if kind in told.get("content", ()) and kind != JSON:
        return
    if "content" in told:
        schema = told["content"][JSON]["schema"] | {"components": strict()["components"]}
        for error in Draft202012Validator(schema).iter_errors(json.loads(plain(answer))):
            yield f"{method} {address} {answer.status_code}: {error.json_path}: {error.message[:300]}"
    elif answer.content:
        yield f"{method} {address}: a body that is not documented: {answer.content[:300]!r}"


def _checked(client: Client, **request: Any) -> Any:
    answer = _HANDLE(client, **request)
    if request["PATH_INFO"].startswith((PREFIX, *ACCESS)):
        found = list(problems(request["REQUEST_METHOD"], request["PATH_INFO"], answer))
        assert not found, found
    return answer


@contextmanager
def answers_as_documented() -> Iterator[None]:
    """Django's test client fails on an answer that the API's document doesn't know."""
    with mock.patch.object(Client, "request", _checked):
        yield
