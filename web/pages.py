"""What pages have in common: the part that is asked for, rows by the page, how a click is answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from core.errors import LakeMirrorError
from web.paging import rows_after

ROWS = 50


def whole_or_part(request: HttpRequest, page: str, part: str) -> str:
    """The whole page, or the part of it that a poll or a click asks for."""
    return part if request.htmx.target == "live" else page


@dataclass(frozen=True, slots=True)
class Rows:
    """A page of rows; `more` is the query that leads to the next page, `first` whether nothing was left out before."""

    rows: list[Any]
    more: str
    first: bool


def page_of_rows(
    request: HttpRequest, rows: QuerySet[Any], column: str, *, newest: bool, amount: int | None = None
) -> Rows:
    """The rows after the one that the query names, in the order of a column of numbers. Raises Invalid."""
    amount = amount or ROWS
    after = request.GET.get("after", "")
    some = list(rows_after(rows, column, after, newest=newest)[: amount + 1])
    more = with_query(request, after=getattr(some[amount - 1], column)) if len(some) > amount else ""
    return Rows(some[:amount], more, not after)


def with_query(request: HttpRequest, **changes: Any) -> str:
    """The query of this page with some fields set, or dropped where they are None."""
    query = {name: value for name, value in request.GET.items() if name != "after"} | changes
    return "?" + urlencode({name: value for name, value in query.items() if value not in (None, "")})


def answered(
    request: HttpRequest, verb: Callable[[], object], message: str | Callable[[Any], str], otherwise: str
) -> HttpResponse:
    """Carry out a verb and say so, or why not. `message` may depend on what the verb gave. Without scripts it leads
    back to where it was clicked, or to the address `otherwise`."""
    try:
        done = verb()
        messages.success(request, message(done) if callable(message) else message)
    except LakeMirrorError as error:
        if not request.htmx:
            raise
        messages.error(request, str(error))
    if request.htmx:
        return render(request, "_notices.html")
    back = request.POST.get("back", "")
    is_own_host = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    return HttpResponseRedirect(back if is_own_host else otherwise)
