"""What a mirror deletes after its source's garbage collection: the sweeps, and the list that waits for approval."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.errors import LakeMirrorError
from core.sweeping import SHOWN
from core.text.phrases import count
from db import clock
from mirrors.models import Mirror, Sweep
from mirrors.models.sweep import OPEN
from mirrors.services.rights import require_operation
from mirrors.services.sweeps.approval import require_approval, sweep_approve, sweep_reject
from mirrors.services.sweeps.asking import sweep_now
from mirrors.services.sweeps.lists import read_due
from mirrors.status.mirror import mirror_statuses
from mirrors.views.tabs import find_visible, may_approve, may_see, show_tab
from web.pages import answered, page_of_rows, with_query

State = Sweep.State
KINDS = {
    State.LOOKING: "busy",
    State.WAITING: "warn",
    State.DELETING: "busy",
    State.DONE: "good",
    State.FROZEN: "bad",
}


@never_cache
@require_safe
@may_see
def sweeps(request: HttpRequest, name: str) -> HttpResponse:
    """The sweeps, the last one first, and what waits for approval."""
    mirror, now = find_visible(request, name), clock.now()
    page = page_of_rows(request, mirror.sweeps.all(), "pk", newest=True)
    waiting = mirror.sweeps.filter(state=State.WAITING).first()
    context = {
        "page": page,
        "sweeps": [(row, KINDS.get(State(row.state), "quiet")) for row in page.rows],
        "first_page": with_query(request),
        "waiting": waiting,
        "open": mirror.sweeps.filter(state__in=OPEN).exists(),
        "may_approve": may_approve(request, mirror),
        "shown": SHOWN,
        **(_list_of(mirror, waiting) if waiting else {}),
    }
    return show_tab(request, mirror_statuses([mirror], now)[0], "mirror_sweeps", context)


def _list_of(mirror: Mirror, sweep: Sweep) -> dict[str, Any]:
    """The beginning of its list, or why that can't be read."""
    address = reverse("api-sweep", args=[mirror.source.name, mirror.name, sweep.pk])
    told: dict[str, Any] = {"csv": f"{address}?format=csv", "listed": [], "unread": ""}
    try:
        told["listed"] = read_due(mirror, sweep)[:SHOWN]
    except LakeMirrorError as error:
        told["unread"] = error.message
    return told


@require_POST
@may_see
def mirror_sweep(request: HttpRequest, name: str) -> HttpResponse:
    """Look through its namespace now."""
    mirror = find_visible(request, name)
    require_operation(request.user, mirror)
    message = f"{mirror.storage_namespace} is looked through now. What this finds for the first time stays for a week."
    back = reverse("mirror_sweeps", args=[mirror.name])
    return answered(request, partial(sweep_now, actor=request.user, mirror=mirror), message, back)


@require_POST
@may_see
def sweep_approved(request: HttpRequest, name: str, sweep: int) -> HttpResponse:
    """Let it delete what is on its list."""
    return _decide(request, name, sweep, sweep_approve, _approved)


@require_POST
@may_see
def sweep_rejected(request: HttpRequest, name: str, sweep: int) -> HttpResponse:
    """Let it delete nothing."""
    return _decide(request, name, sweep, sweep_reject, _rejected)


def _decide(
    request: HttpRequest, name: str, number: int, verb: Callable[..., Sweep], words: Callable[[Sweep], str]
) -> HttpResponse:
    mirror = find_visible(request, name)
    require_approval(request.user, mirror.name)

    def decide() -> Sweep:
        return verb(actor=request.user, mirror=mirror, number=number)

    return answered(request, decide, words, reverse("mirror_sweeps", args=[mirror.name]))


def _approved(sweep: Sweep) -> str:
    return f"Approved: {count(sweep.due, 'object')} will be deleted, as far as nobody has come to need them."


def _rejected(sweep: Sweep) -> str:
    return "Rejected: nothing is deleted. The next sweep may ask again."
