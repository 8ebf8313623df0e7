"""Whatever the API is sent, by whomever: it never breaks, and answers only what its document says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings, strategies
from schemathesis import GenerationMode

from installations import refresh
from rbac.models import User
from tests.documented import plain, strict
from tests.web.api_calls import OPERATIONS, authorized

pytestmark = pytest.mark.django_db

EXAMPLES = 4
LONG = "x" * 70_000
NASTY_TEXT = ["", "\0", "a\0b", "\ud800", "²", "‮", "\r\nX: y", "%00", "../..", "💥", "'\"`;--{{x}}", "*", LONG]
NASTY = [
    *NASTY_TEXT,
    None,
    True,
    -1,
    0,
    10**30,
    10**400,
    1e308,
    float("nan"),
    float("inf"),
    [],
    ["\0"],
    [[]],
    {},
    {"\0": "\ud800"},
    [None],
]


HARDLY_JSON = [
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"\xff\xfe",
    b"\0",
    b"9" * 5_000,
    b"NaN",
    b'"\\ud800"',
    b'{"Records": [{"s3": {"bucket": {"name": "dst"}, "object": {"key": "lake/\\ud800"}}}]}',
]


@pytest.fixture
def people(owner: User, teammate: User) -> list[Client]:
    """An administrator, a viewer, and nobody."""
    clients = [Client(raise_request_exception=False) for _ in range(3)]
    clients[0].force_login(owner)
    clients[1].force_login(teammate)
    return clients


def send(people: list[Client], method: str, address: str, body: bytes, headers: dict[str, str], kind: str) -> Any:
    """One call by each of them; gives the last answer. What it does is undone; an answer that isn't documented fails in
    the client."""
    for client in people:
        with transaction.atomic():
            answer: HttpResponse = client.generic(method, address, body, content_type=kind, headers=headers)
            transaction.set_rollback(True)
        refresh.read()
        assert answer.status_code < 500, (method, address[:300], body[:300], headers)
        if answer.streaming:
            answer.getvalue()  # to its end, as a server sends it
        elif answer.content:
            json.loads(plain(answer))
    return answer


@settings(
    max_examples=EXAMPLES * len(OPERATIONS),
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=strategies.data())
def test_what_the_document_lets_one_send_and_what_not(
    data: strategies.DataObject, people: list[Client], real: dict[str, Any]
) -> None:
    label = data.draw(strategies.sampled_from(sorted(OPERATIONS)))
    operation = OPERATIONS[label]
    named = {one["name"] for one in operation.definition.raw.get("parameters", ()) if one["in"] == "path"}
    mode = data.draw(strategies.sampled_from(list(GenerationMode)))
    path = data.draw(strategies.sampled_from([None, {name: real[name] for name in named}]))
    case = data.draw(operation.as_strategy(generation_mode=mode, path_parameters=path))
    request = case.as_transport_kwargs(base_url="http://testserver")
    headers = {name: str(value) for name, value in request["headers"].items() if name != "Authorization"}
    query = "&".join(f"{quote(str(name))}={quote(str(value))}" for name, value in request["params"].items())
    address = request["url"].removeprefix("http://testserver") + ("?" + query if query else "")
    body = json.dumps(request["json"]) if "json" in request else request.get("data") or b""
    sent = body if isinstance(body, bytes) else str(body).encode()
    send(people, request["method"], address, sent, authorized(label) | headers, "application/json")


def fields_of(call: dict[str, Any]) -> list[str]:
    """The names of a body's fields."""
    body = call.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    return list(
        strict()["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], {}).get("properties", ())
    )


def addresses_of(label: str, value: str, real: dict[str, Any]) -> Iterator[str]:
    """A text in every place of a call's address, one after the other."""
    path, text = label.partition(" ")[2], quote(value[:5_000].encode(errors="surrogatepass"))
    for one in OPERATIONS[label].definition.raw.get("parameters", ()):
        if one["in"] == "path":
            yield path.format(**real | {one["name"]: text or "%20"})
        elif one["in"] == "query":
            yield f"{path.format(**real)}?{one['name']}={text}"


def refused_at_once(answer: HttpResponse) -> set[str]:
    """The fields of a body that were looked at one by one, and refused. What is told of one field alone may have been
    said before others were looked at."""
    told = json.loads(plain(answer)) if answer.status_code == 400 else {}
    return {error["field"].partition(".")[0] for error in told.get("errors", ())}


def test_texts_in_addresses_that_break_programs(people: list[Client], real: dict[str, Any]) -> None:
    for label, value in product(OPERATIONS, NASTY_TEXT):
        for address in addresses_of(label, value, real):
            send(people[:1], label.partition(" ")[0], address, b"", authorized(label), "application/json")


def test_values_in_bodies_that_break_programs(people: list[Client], real: dict[str, Any]) -> None:
    """In place of the body, in all fields at once, then alone in each that was not refused."""
    for label, value in product([one for one in OPERATIONS if "requestBody" in OPERATIONS[one].definition.raw], NASTY):
        method, _, path = label.partition(" ")
        names, call = fields_of(OPERATIONS[label].definition.raw), (people[:1], method, path.format(**real))

        def sent(body: Any, call: Any = call, headers: Any = authorized(label)) -> HttpResponse:  # noqa: B008
            return send(*call, json.dumps(body).encode(), headers, "application/json")

        sent(value)
        refused = refused_at_once(sent(dict.fromkeys(names, value))) if len(names) > 1 else set()
        for name in names:
            if name not in refused:
                sent({name: value})


def test_bodies_that_are_hardly_json(people: list[Client], real: dict[str, Any]) -> None:
    for label, body in product(OPERATIONS, HARDLY_JSON):
        method, _, path = label.partition(" ")
        if method in ("POST", "PUT", "PATCH"):
            for kind in ("application/json", "text/plain"):
                send(people[:1], method, path.format(**real), body, authorized(label), kind)
