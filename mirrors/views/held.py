"""Merges that were held for a mirror, on its page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from core.holding import policies_of
from db import clock
from mirrors.models import HeldMerge
from mirrors.services.holds.sight import Regions, answer_of, complete_in, regions_told
from mirrors.status.mirror import mirror_statuses
from mirrors.transitions.held_merges import ACKNOWLEDGED, held_of
from mirrors.views.tabs import find_visible, may_see, show_tab
from web.pages import page_of_rows, with_query

State = HeldMerge.State
_KINDS = {
    State.HELD: "busy",
    State.RELEASED: "good",
    State.ALLOWED: "warn",
    State.REFUSED: "quiet",
    State.NOT_TAKEN: "quiet",
    State.UNGATED: "bad",
}


@dataclass(frozen=True, slots=True)
class HeldStatus:
    """A held merge, how it is drawn, for how many seconds it was, or is, held, and the regions that had all of it."""

    held: HeldMerge
    kind: str
    seconds: float
    regions: list[str]
    words: str


@never_cache
@require_safe
@may_see
def held_merges(request: HttpRequest, name: str) -> HttpResponse:
    """The policies, and what lakeFS asked, the last first."""
    mirror, now = find_visible(request, name), clock.now()
    told = regions_told(request.user, mirror)
    page = page_of_rows(request, held_of(mirror), "pk", newest=True)
    context = {
        "page": page,
        "held": [held_status(row, now, told) for row in page.rows],
        "policies": policies_of(mirror.hold),
        "first_page": with_query(request),
    }
    return show_tab(request, mirror_statuses([mirror], now)[0], "mirror_held", context)


def held_status(held: HeldMerge, now: datetime, told: Regions) -> HeldStatus:
    """As a page draws it for who may be told of these regions."""
    ended = held.ended_at or now
    unseen = held.state in ACKNOWLEDGED and held.seen_at is None
    detail = answer_of(held, told)
    if held.state == State.UNGATED:
        detail = "this head came without a release: nobody was asked before the branch moved"
    words = "; ".join(part for part in (detail, "the branch was not seen there yet" if unseen else "") if part)
    kind, seconds = _KINDS.get(State(held.state), "quiet"), (ended - held.held_at).total_seconds()
    return HeldStatus(held, kind, seconds, complete_in(held, told), words)
