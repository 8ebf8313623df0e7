"""The API describes itself: an OpenAPI 3.1 document, made from what stands beside each endpoint.

An endpoint says `@answers("List tags", 200, TagPage, query=PAGE)` above its method; what holds for every call (who may
ask, the shape of errors, Idempotency-Key) is added here. Tests compare every answer with the document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

PREFIX, EXPORTS_PREFIX = "/service/replication/v1/", "/api/v1/"
PREFIXES = (PREFIX, EXPORTS_PREFIX)
"""Mirrors have an address of their own; exports that which lakeFS once gave them."""
JSON, CSV, PARQUET = "application/json", "text/csv", "application/vnd.apache.parquet"
ACCESS_KEY, WEBHOOK_SECRET = "accessKey", "webhookSecret"
WHEN = {
    400: "a field, parameter or header is invalid: see `field` and the message",
    401: "no credentials, or wrong ones",
    403: "the key's user lacks a right; the message names action and resource",
    404: "not found",
    409: "a conflict with the current state: see the message",
    412: "If-Match does not match: the settings have changed",
    413: "the body is larger than 1 MB",
    415: "the body is not JSON",
    422: "this Idempotency-Key was used for another request",
    429: "too many requests with this access key, or too many wrong secrets: retry after Retry-After",
    502: "the source or the destination refused, or returned an error",
    503: "the source, the destination or the authorization service can't be reached; nothing was stored",
}
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="Makes the call safe to repeat: for 24 hours the same request with the same key is carried out "
    "once and returns the same answer. Visible ASCII characters.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    {"type": "string"},
    OpenApiParameter.HEADER,
    description="The ETag of the settings as read by the caller: 412 if they have changed since. "
    "`*`, and lists, as in RFC 9110.",
)


_FAILS = {ACCESS_KEY: (400, 401, 403, 404, 429, 503), WEBHOOK_SECRET: (400, 401, 403, 404)}
"""What every such call may answer."""


class FieldFailure(serializers.Serializer):
    """What is wrong with one field of several."""

    message = serializers.CharField()
    field = serializers.CharField()


class Failure(serializers.Serializer):
    """What every error looks like."""

    message = serializers.CharField(help_text="what is wrong, and what to do, in words")
    field = serializers.CharField(
        required=False, help_text="the field (as a dotted path), parameter or header at fault, if any"
    )
    errors = FieldFailure(many=True, required=False, help_text="each of the fields, where several are wrong")


class Pagination(serializers.Serializer):
    """What stands beside a page of results; `next_offset` is the `after` of the next one, "" on the last."""

    has_more = serializers.BooleanField()
    next_offset = serializers.CharField(allow_blank=True)
    max_per_page = serializers.IntegerField()
    results = serializers.IntegerField()


def etag(*statuses: int) -> OpenApiParameter:
    """The header that these answers carry."""
    description = "identifies the settings, not the state: for If-Match"
    return OpenApiParameter("ETag", str, OpenApiParameter.HEADER, response=list(statuses), description=description)


def answers(
    summary: str,
    status: int,
    answer: Any = None,
    *,
    body: Any = None,
    query: Sequence[OpenApiParameter] = (),
    fails: Sequence[int] = (),
    auth: str = ACCESS_KEY,
    csv: bool = False,
    parquet: bool = False,
    also: tuple[int, Any] | None = None,
    tag: str = "",
) -> Callable[[Any], Any]:
    """Describe a method of a view: what it does in some words that no other call has, its status and answer.

    `query` may hold headers too; `fails` are statuses beyond those that every such call may have. With `csv`, or with
    `parquet`, the answer may be a table too; `also` is another status with its answer. `tag`: of a function; a class of
    views has its own.
    """

    def decorate(method: Any) -> Any:
        keyed = [IDEMPOTENCY_KEY] if _takes_key(method, auth) else []
        failures = {*fails, *_FAILS[auth]} | ({413, 415} if body else set()) | ({409, 422} if keyed else set())
        responses = {(status, JSON): OpenApiResponse(answer, description=_phrase(status))}
        responses |= {(also[0], JSON): OpenApiResponse(also[1], description=_phrase(also[0]))} if also else {}
        responses |= {(status, CSV): OpenApiResponse(str, description=_phrase(status))} if csv else {}
        if parquet:
            responses |= {(status, PARQUET): OpenApiResponse(OpenApiTypes.BINARY, description=_phrase(status))}
        responses |= {(code, JSON): OpenApiResponse(Failure, description=WHEN[code]) for code in sorted(failures)}
        return extend_schema(
            operation_id="_".join(word for word in summary.lower().split() if word not in ("a", "an", "the", "of")),
            summary=summary,
            request=body,
            parameters=[*query, *keyed],
            responses=responses,
            auth=[{auth: []}],
            tags=[tag] if tag else None,
        )(method)

    return decorate


def _takes_key(method: Any, auth: str) -> bool:
    return method.__name__ == "post" and auth == ACCESS_KEY


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase.lower()


class Schema(AutoSchema):
    """drf-spectacular's reading of a view; the view says which part of the API it belongs to."""

    def get_tags(self) -> list[str]:
        """`tag` of its class."""
        return [self.view.tag]


def only_the_api(endpoints: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Hooks have a second, shorter address, which the document leaves out; so it does methods that a view inherits."""
    return [
        (path, pattern, method, view)
        for path, pattern, method, view in endpoints
        if path.startswith(PREFIXES) and method.lower() in vars(view.cls)
    ]


@cache
def document() -> dict[str, Any]:
    """The whole API as an OpenAPI document."""
    made: dict[str, Any] = SchemaGenerator(urlconf="lakemirror_site.urls").get_schema(request=None, public=True)
    return made
