"""What the pages of access share: their tabs, lists by name, and how a click is answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from core.access.policies import ALL
from core.errors import Invalid, LakeMirrorError
from rbac import services

ROWS = 50


@dataclass(frozen=True, slots=True)
class Tab:
    """A part of the pages of access; `listing` is the right to list what it shows, "" where everybody has a page."""

    address: str
    word: str
    listing: str


TABS = (
    Tab("users", "Users", "auth:ListUsers"),
    Tab("groups", "Groups", "auth:ListGroups"),
    Tab("policies", "Policies", "auth:ListPolicies"),
    Tab("keys", "My access keys", ""),
    Tab("simulate", "Simulate access", ""),
)


def tabs_of(user: Any) -> list[Tab]:
    """The tabs that somebody sees."""
    return [tab for tab in TABS if not tab.listing or services.allowed(user, tab.listing, ALL)]


def show(
    request: HttpRequest, template: str, tab: str, context: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    """A page of access under its tab."""
    shared = {"section": "access", "tab": tab, "tabs": tabs_of(request.user), "now": timezone.now()}
    return render(request, f"access/{template}", shared | dict(context), status=status)


@dataclass(frozen=True, slots=True)
class Names:
    """Rows of a list by name; `more` is the query that leads to the next ones, `first` whether none was left out."""

    rows: list[Any]
    more: str
    first: bool
    find: str


def by_name(request: HttpRequest, rows: QuerySet[Any], field: str) -> Names:
    """Rows whose name holds what the query looks for, by name, after the one that it names."""
    find, after = request.GET.get("find", "").strip()[:128], request.GET.get("after", "")[:128]
    matches = rows.filter(**{f"{field}__icontains": find}) if find else rows
    matches = matches.filter(**{f"{field}__gt": after}) if after else matches
    some = list(matches.order_by(field)[: ROWS + 1])
    query = {"find": find, "after": getattr(some[ROWS - 1], field)} if len(some) > ROWS else {}
    more = "?" + urlencode({name: value for name, value in query.items() if value}) if query else ""
    return Names(some[:ROWS], more, not after, find)


def carry_out(request: HttpRequest, verb: Callable[[], object], message: str, *address: str) -> HttpResponse:
    """Carry out a verb and go on to an address, which says so, or why not."""
    try:
        verb()
        messages.success(request, message)
    except LakeMirrorError as error:
        messages.error(request, f"Nothing was changed: {error}.")
    return redirect(*address)


def typed(request: HttpRequest, field: str, most: int = 128) -> str:
    """A field of a form that has no class of its own. Raises Invalid for what no database takes."""
    given = request.POST.get(field, "").strip()
    if "\0" in given:
        raise Invalid("a text can't contain a NUL character", field=field)
    return given[:most]


def reason_of(request: HttpRequest) -> str:
    """Why somebody did it, for the record."""
    return typed(request, "reason", 1000)
