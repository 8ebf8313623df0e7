"""Lists of the API come in pages: `amount` rows after `after`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Manager, Model, QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from core.errors import Invalid
from lakemirror_site import config

M = TypeVar("M", bound=Model)

PAGE = (
    OpenApiParameter("amount", {"type": "integer", "minimum": 1}, description="most results; 100 unless told"),
    OpenApiParameter("after", str, description="the next_offset of the page before"),
)
"""What a list takes, for the API's document."""


def pagination(results: int, next_offset: str) -> dict[str, Any]:
    """What stands beside a page of results; `next_offset` is "" on the last one."""
    return {
        "has_more": bool(next_offset),
        "next_offset": next_offset,
        "max_per_page": config.current().list_mirrors_page_size,
        "results": results,
    }


def number_of(given: str, field: str) -> int:
    """An offset that is a number. Raises Invalid, naming the field."""
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise Invalid(f"'{given[:40]}' is not a next_offset of this list", field=field)
    return int(given)


def newest_first(
    request: Request, rows: Manager[M] | QuerySet[M], to_json: Callable[[M], dict[str, Any]]
) -> dict[str, Any]:
    """A page of rows by descending id, the last one made first."""
    amount, after = page_of(request)
    found = rows.order_by("-pk")
    if after:
        found = found.filter(pk__lt=number_of(after, "after"))
    page = list(found[: amount + 1])
    more, page = len(page) > amount, page[:amount]
    told = pagination(len(page), str(page[-1].pk) if more else "")
    return {"pagination": told, "results": [to_json(row) for row in page]}


def page_of(request: Request) -> tuple[int, str]:
    """How many rows are asked for, and after which one ("" from the start)."""
    most = config.current().list_mirrors_page_size
    given = request.query_params.get("amount", str(min(100, most)))
    if not given.isascii() or not given.isdigit() or not 0 < int(given) <= most:
        raise Invalid(f"'{given[:40]}' is no page size", field="amount", hint=f"Use a number from 1 to {most}")
    return int(given), request.query_params.get("after", "")
