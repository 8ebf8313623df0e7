"""The API's document as a page to read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from rbac import services as rbac
from web.openapi import CSV, JSON, PREFIX, WEBHOOK_SECRET, answers, document

GROUPS = {
    "Mirrors": ("mirrors", "everywhere"),
    "Plan a mirror": ("preflight", "preview", "check"),
    "Commits and missing files": ("commits", "blockers", "repair", "waivers", "unreplicated", "sweeps"),
    "Validation": ("runs", "validations"),
    "Copying": ("copying",),
    "Exports": ("exports", "verification"),
    "Replication rules": ("rules",),
    "Lag and risk": ("metrics", "risk"),
    "Overview, jobs and search": ("overview", "jobs", "search", "objects"),
    "Alerts": ("notifications",),
    "Webhooks of lakeFS and stores": ("hooks", "holds"),
    "Installations": ("installations",),
    "Access": ("users", "groups", "policies", "credentials", "rights", "signin"),
    "Audit": ("audit",),
    "This document": ("document",),
}
"""The headings of the page, in order, and the tags of calls below each; a tag that has none comes last, as it is."""
_HEADINGS = {tag: heading for heading, tags in GROUPS.items() for tag in tags}
_ORDER = {heading: number for number, heading in enumerate(GROUPS)}
_PLAIN = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "null"}
_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "maxLength": "up to {} characters",
    "maxItems": "up to {}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A parameter, or a field of a shape. `place` is path, query or header."""

    name: str
    type: SafeString
    required: bool
    description: SafeString
    place: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A body or an answer that has a name."""

    name: str
    description: SafeString
    fields: list[Field]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A status and what comes with it."""

    status: str
    description: SafeString
    type: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One thing that the API does."""

    id: str
    group: str
    method: str
    path: str
    summary: str
    description: SafeString
    by_secret: bool
    parameters: list[Field]
    body: SafeString | None
    answers: list[Answer]


@never_cache
@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    """All calls and shapes. For everyone who is signed in."""
    rbac.require(request.user)
    calls = sorted(_calls(document()), key=lambda call: (_ORDER.get(call.group, len(GROUPS)), call.group))
    groups = [(name, list(group)) for name, group in groupby(calls, key=lambda call: call.group)]
    context = {"section": "api", "groups": groups, "shapes": list(_shapes(document())), "prefix": PREFIX}
    return render(request, "api_docs.html", context)


def _calls(openapi: Mapping[str, Any]) -> Iterator[Call]:
    for path, item in openapi["paths"].items():
        for method, call in item.items():
            yield _call(method.upper(), path, call)


def _call(method: str, path: str, call: Mapping[str, Any]) -> Call:
    body = call.get("requestBody")
    return Call(
        id=call["operationId"],
        group=_HEADINGS.get(call["tags"][0], call["tags"][0].capitalize()),
        method=method,
        path=path.removeprefix(PREFIX),
        summary=call["summary"],
        description=_rich(call.get("description", "")),
        by_secret=any(WEBHOOK_SECRET in way for way in call["security"]),
        parameters=[_parameter(parameter) for parameter in call.get("parameters", ())],
        body=_type(body["content"][JSON]["schema"]) if body else None,
        answers=[_answer(status, answer) for status, answer in call["responses"].items()],
    )


def _parameter(parameter: Mapping[str, Any]) -> Field:
    return _field(
        parameter["name"],
        parameter["schema"] | {"description": parameter.get("description", "")},
        parameter.get("required"),
        parameter["in"],
    )


def _answer(status: str, answer: Mapping[str, Any]) -> Answer:
    content = answer.get("content", {})
    types: list[str] = [_type(content[JSON]["schema"])] if JSON in content else []
    types += ["CSV"] if CSV in content else []
    either = format_html_join(" or ", "{}", ((named,) for named in types))
    return Answer(status=status, description=_rich(answer["description"]), type=either)


def _shapes(openapi: Mapping[str, Any]) -> Iterator[Shape]:
    for name, schema in openapi["components"]["schemas"].items():
        required = schema.get("required", ())
        fields = [_field(key, value, key in required) for key, value in schema.get("properties", {}).items()]
        description = _type(schema) if "oneOf" in schema else _rich(schema.get("description", ""))
        yield Shape(name=name, description=description, fields=fields)


def _field(name: str, schema: Mapping[str, Any], required: bool | None, place: str = "") -> Field:
    parts = [
        schema.get("description", ""),
        *(words.format(schema[key]) for key, words in _LIMITS.items() if key in schema),
    ]
    if schema.get("default") not in (None, ""):
        parts.append(f"`{schema['default']}` by default")
    notes = "; ".join(part for part in parts if part)
    return Field(name=name, type=_type(schema), required=bool(required), description=_rich(notes), place=place)


def _type(schema: Mapping[str, Any]) -> SafeString:
    """What may stand there, in words; a shape as a link to it."""
    if "$ref" in schema:
        return format_html('<a href="#shape-{0}">{0}</a>', schema["$ref"].rpartition("/")[2])
    if either := schema.get("oneOf") or schema.get("allOf"):
        return format_html_join(" or ", "{}", ((_type(choice),) for choice in either))
    if "enum" in schema:
        return format_html_join(" or ", "<code>{}</code>", ((_literal(value),) for value in schema["enum"]))
    if schema.get("type") == "array":
        return format_html("list of {}", _type(schema["items"]))
    if "properties" in schema:
        inside = ((name, _type(value)) for name, value in schema["properties"].items())
        return format_html("object with {}", format_html_join(", ", "<code>{}</code> ({})", inside))
    return format_html("{}", _plain(schema))


def _literal(value: Any) -> str:
    """A value as JSON writes it, text without its quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def _plain(schema: Mapping[str, Any]) -> str:
    if schema.get("format") == "date-time":
        return "time" + (" or null" if "null" in schema["type"] else "")
    named = schema.get("type", "any JSON")
    return " or ".join(_PLAIN.get(kind, kind) for kind in ([named] if isinstance(named, str) else named))


def _rich(text: str) -> SafeString:
    """Words on one line, what stands in backticks set apart."""
    parts = re.split(r"`([^`]*)`", " ".join(text.split()))
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", p) if n % 2 else p,) for n, p in enumerate(parts))
    )


class Document(APIView):
    """The API's description of itself."""

    tag = "document"

    @answers("Get this document", 200, OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        """OpenAPI 3.1, as JSON. For everyone who is signed in."""
        rbac.require(request.user)
        return Response(document())
