"""Lists of the API come in pages: `amount` rows after `after`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from django.db.models import Manager, Model, QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from core.errors import Invalid
from db import clock
from deployment import config
from web.serializers import rfc3339

M = TypeVar("M", bound=Model)
T = TypeVar("T")

USUAL, MOST = 100, 1000
"""How many results a page has unless it is told, and at most: lakeFS's numbers."""
AFTER = OpenApiParameter("after", str, description="the next_offset of the previous page")
PAGE = (
    OpenApiParameter(
        "amount", {"type": "integer", "minimum": 1, "maximum": MOST}, description=f"most results; {USUAL} unless told"
    ),
    AFTER,
)
"""What a list takes, for the API's document."""
MIRRORS_PAGE = (
    OpenApiParameter(
        "amount",
        {"type": "integer", "minimum": -1, "maximum": MOST},
        description="most results; as configured (list_mirrors_page_size) unless it is 1 or more",
    ),
    AFTER,
)
"""What a list of mirrors takes."""


def a_page(rows: Sequence[T], amount: int, offset_of: Callable[[T], Any]) -> tuple[list[T], dict[str, Any]]:
    """The first `amount` of rows, of which one more was asked for, and the answer that is to get the `results`."""
    page = list(rows[:amount])
    next_offset = str(offset_of(page[-1])) if len(rows) > amount else ""
    return page, {"pagination": pagination(len(page), next_offset), "as_of": rfc3339(clock.now())}


def pagination(results: int, next_offset: str) -> dict[str, Any]:
    """Where a page of so many results ends, as lakeFS says it."""
    return {
        "has_more": bool(next_offset),
        "next_offset": next_offset,
        "max_per_page": MOST,
        "results": results,
    }


def number_of(given: str, field: str) -> int:
    """An offset that is a number. Raises Invalid, naming the field."""
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise Invalid(f"'{given[:40]}' is not a next_offset of this list", field=field)
    return int(given)


def rows_after(rows: Manager[M] | QuerySet[M], column: str, after: str, *, newest: bool) -> QuerySet[M]:
    """In the order of a column of numbers, from its largest on with `newest`, those behind an offset ("" all of them).
    Raises Invalid."""
    ordered = rows.order_by(f"-{column}" if newest else column)
    bound = f"{column}__{'lt' if newest else 'gt'}"
    return ordered.filter(**{bound: number_of(after, "after")}) if after else ordered


def newest_first(
    request: Request, rows: Manager[M] | QuerySet[M], to_json: Callable[[M], dict[str, Any]]
) -> dict[str, Any]:
    """A page of rows by descending id, the last one made first."""
    return by_number(request, rows, to_json, "pk", newest=True)


def by_number(
    request: Request,
    rows: Manager[M] | QuerySet[M],
    to_json: Callable[[M], dict[str, Any]],
    column: str,
    *,
    newest: bool,
) -> dict[str, Any]:
    """A page of rows in the order of a column of numbers, from its largest on with `newest`."""
    amount, after = page_of(request)
    some = list(rows_after(rows, column, after, newest=newest)[: amount + 1])
    page, answer = a_page(some, amount, lambda row: getattr(row, column))
    return answer | {"results": [to_json(row) for row in page]}


def page_of(request: Request) -> tuple[int, str]:
    """How many rows are asked for, and after which one ("" from the start)."""
    return _amount(request, USUAL, least=1), request.query_params.get("after", "")


def mirrors_page_of(request: Request) -> tuple[int, str]:
    """The same of a list of mirrors: as many as are configured, unless the caller says how many."""
    usual = config.current().list_mirrors_page_size
    return max(0, _amount(request, usual, least=-1)) or usual, request.query_params.get("after", "")


def _amount(request: Request, usual: int, *, least: int) -> int:
    given = request.query_params.get("amount", str(usual))
    digits = given.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 4 or not least <= int(given) <= MOST:
        raise Invalid(f"'{given[:40]}' is not a page size", field="amount", hint=f"Use a number from 1 to {MOST}")
    return int(given)


def one_of(request: Request, name: str, known: Collection[str]) -> str:
    """What a filter asks for, "" when it isn't given. Raises Invalid, naming the filter and what it may be."""
    given = request.query_params.get(name, "")
    if given and given not in known:
        raise Invalid(f"'{given[:40]}' is not one of {', '.join(known)}", field=name)
    return given
