"""What the pages of one mirror share: finding it, its tabs, and how a click is answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from core.errors import LakeMirrorError
from mirrors.beside import exports
from mirrors.models import Mirror
from mirrors.paging import number_of
from mirrors.readings import MirrorReading
from mirrors.services import repository_arn
from mirrors.trouble import trouble_of
from rbac import services as rbac
from rbac.views import permission_required

SECTION = {"section": "mirrors"}
TABS = (
    ("mirror", "Branches"),
    ("mirror_commits", "Commits"),
    ("mirror_backlog", "Backlog"),
    ("mirror_runs", "Runs"),
    ("mirror_metrics", "Metrics"),
    ("mirror_settings", "Settings"),
    ("mirror_audit", "Audit"),
)
"""The name of each address, and what stands on the tab."""
ROWS = 50
EXPORTED = 5
may_see = permission_required("fs:ListRepositories", "*")


def find_visible(request: HttpRequest, name: str) -> Mirror:
    """The mirror of that name, if the user may see it. Raises Http404."""
    mirror = Mirror.objects.visible_to(request.user).select_related("source", "created_by").filter(name=name).first()
    if mirror is None:
        raise Http404(f"no mirror {name}")
    return mirror


def may_change(request: HttpRequest, mirror: Mirror) -> bool:
    """Whether the user may change it."""
    return rbac.allowed(request.user, "fs:MirrorRepository", repository_arn(mirror.source.name))


def may_operate(request: HttpRequest, mirror: Mirror) -> bool:
    """Whether the user may have it paused, looked at, checked."""
    return rbac.allowed(request.user, "fs:OperateMirror", repository_arn(mirror.source.name))


def whole_or_part(request: HttpRequest, page: str, part: str) -> str:
    """The whole page, or the part of it that a poll or a click asks for."""
    return part if request.htmx.target == "live" else page


def show_tab(
    request: HttpRequest, reading: MirrorReading, tab: str, context: Mapping[str, Any], status: int = 200
) -> HttpResponse:
    """A mirror's page with one of its tabs, whose template is named for it."""
    shared = SECTION | {"mirror": reading.mirror, "reading": reading, "tab": tab, "tabs": TABS}
    shared["may_change"] = may_change(request, reading.mirror)
    shared["may_operate"] = may_operate(request, reading.mirror)
    shared["may_delete"] = rbac.allowed(request.user, "fs:DeleteRepository", repository_arn(reading.mirror.name))
    shared["trouble"] = trouble_of(reading)
    source = reading.mirror.source
    shared["exported"] = exports().of_source(request.user, source.region, source.name, reading.as_of, EXPORTED)
    shared["part"] = f"mirrors/_tab_{dict(TABS)[tab].lower()}.html"
    template = whole_or_part(request, "mirrors/detail.html", "mirrors/_detail.html")
    return render(request, template, {**shared, **context}, status=status)


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
    found = rows.order_by(f"-{column}" if newest else column)
    if after:
        found = found.filter(**{f"{column}__{'lt' if newest else 'gt'}": number_of(after, "after")})
    some = list(found[: amount + 1])
    more = with_query(request, after=getattr(some[amount - 1], column)) if len(some) > amount else ""
    return Rows(some[:amount], more, not after)


def with_query(request: HttpRequest, **changes: Any) -> str:
    """The query of this page with some fields set, or dropped where they are None."""
    query = {name: value for name, value in request.GET.items() if name != "after"} | changes
    return "?" + urlencode({name: value for name, value in query.items() if value not in (None, "")})


def carry_out(
    request: HttpRequest, mirror: Mirror, verb: Callable[[], object], told: str | Callable[[Any], str]
) -> HttpResponse:
    """Carry out a verb of a mirror, and lead back to it; see `answered`."""
    return answered(request, verb, told, reverse("mirror", args=[mirror.name]))


def answered(
    request: HttpRequest, verb: Callable[[], object], told: str | Callable[[Any], str], otherwise: str
) -> HttpResponse:
    """Carry out a verb and say so, or why not. `told` may depend on what the verb gave. Without scripts it leads back
    to where it was clicked, or to the address `otherwise`."""
    try:
        done = verb()
        messages.success(request, told(done) if callable(told) else told)
    except LakeMirrorError as error:
        if not request.htmx:
            raise
        messages.error(request, str(error))
    if request.htmx:
        return render(request, "_notices.html")
    back = request.POST.get("back", "")
    ours = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    return HttpResponseRedirect(back if ours else otherwise)
