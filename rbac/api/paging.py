"""Lists as lakeFS pages them: `amount` names that begin with `prefix`, after `after`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.db.models.functions import Left
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from core.errors import Invalid
from web.paging import MOST, USUAL, pagination

M = TypeVar("M", bound=Model)

PAGE = (
    OpenApiParameter("prefix", str, description="only ids that begin with this"),
    OpenApiParameter("after", str, description="the next_offset of the previous page"),
    OpenApiParameter(
        "amount",
        {"type": "integer", "minimum": -1, "maximum": MOST},
        description=f"most results; {USUAL} unless it is 1 or more",
    ),
)


def listed(request: Request, rows: QuerySet[M], column: str, to_json: Callable[[M], dict[str, Any]]) -> Response:
    """A page of rows by a column of names."""
    amount = _amount(request)
    prefix, after = request.query_params.get("prefix", ""), request.query_params.get("after", "")
    if prefix:  # LIKE would not mind the case everywhere
        rows = rows.alias(beginning=Left(column, len(prefix))).filter(beginning=prefix)
    fetched = list(rows.filter(**{f"{column}__gt": after}).order_by(column)[: amount + 1])
    page = fetched[:amount]
    next_offset = str(getattr(page[-1], column)) if len(fetched) > amount else ""
    return Response({"pagination": pagination(len(page), next_offset), "results": [to_json(row) for row in page]})


def _amount(request: Request) -> int:
    given = request.query_params.get("amount", str(USUAL))
    digits = given.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 4 or not -1 <= int(given) <= MOST:
        raise Invalid(f"'{given[:40]}' is not a page size", field="amount", hint=f"Use a number from 1 to {MOST}")
    return int(given) if int(given) > 0 else USUAL
