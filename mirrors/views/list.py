"""The list of mirrors, and what is done to several of them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.errors import Invalid, LakeMirrorError
from core.mirroring.states import State
from core.text.phrases import Phrase, count, name, say, sentence
from db import clock
from installations.probes import NAME
from mirrors.models import Mirror
from mirrors.services import mirrors as services
from mirrors.services import settings
from mirrors.services.validations import validation_ask
from mirrors.status.fleet import FEW, fleet_statuses, up_to_date
from mirrors.status.mirror import MirrorStatus, moved_lately
from mirrors.status.root_causes import needing
from mirrors.status.sparks import sparks
from mirrors.views.forms import likely_region
from mirrors.views.list_query import COLUMNS, ORDERS, ListQuery
from mirrors.views.tabs import SECTION, may_see
from web.csv_export import csv_answer

PAGE = 30
NAMED = 3


@never_cache
@require_safe
@may_see
def mirror_list(request: HttpRequest) -> HttpResponseBase:
    """The mirrors that the address asks for, those that need somebody first."""
    now = clock.now()
    query = ListQuery.of(request.GET)
    visible = Mirror.objects.visible_to(request.user)
    readings = fleet_statuses(query.narrow(visible), now)
    matching = query.select(readings)
    if request.GET.get("format") == "csv":
        return _csv(matching, now)
    page, more = query.page(matching, PAGE)
    page = page if len(readings) <= FEW else up_to_date(page, now)
    context = SECTION | {
        "query": query,
        "readings": page,
        "sparks": sparks([reading.mirror for reading in page], now),
        "number": len(matching),
        "now": now,
        "as_of": min((reading.as_of for reading in page), default=now),
        "summary": tell(matching),
        "active": any(reading.active for reading in page) or moved_lately([reading.mirror for reading in page], now),
        "changes": ", ".join(f"{reading.mirror.name}: {reading.state.word}" for reading in needing(page)),
        "more": more,
        "none": not matching and not visible.exists(),
        "states": list(State),
        "orders": {key: words for key, (words, _) in ORDERS.items()},
        "regions": visible.order_by("region").values_list("region", flat=True).distinct(),
        "example_region": likely_region,
    }
    part = "mirrors/_list.html" if request.htmx.target == "live" else "mirrors/list.html"
    return render(request, part, context)


def _csv(readings: Sequence[MirrorStatus], now: datetime) -> StreamingHttpResponse:
    """All that were found, on one page."""
    rows = ({column: value(reading) for column, value in COLUMNS.items()} for reading in readings)
    return csv_answer(f"mirrors-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}", list(COLUMNS), rows)


def tell(readings: Sequence[MirrorStatus]) -> Phrase:
    """One sentence for all mirrors: who needs somebody, and whether the rest is well."""
    urgent = needing(readings)
    well = sum(reading.state is State.UP_TO_DATE for reading in readings)
    if not urgent:
        rest = _not_well(readings) or "nothing needs you"
        return sentence(f"{well} of {count(len(readings), 'mirror')} up to date; {rest}")
    listed = say(*(_named(reading, first=number == 0) for number, reading in enumerate(urgent[:NAMED])))
    more = f", and {len(urgent) - NAMED:,} more" if len(urgent) > NAMED else ""
    need = count(len(urgent), "mirror needs", "mirrors need")
    return sentence(f"{need} you: ", listed, more, f". {well:,} of {len(readings):,} are up to date")


def _not_well(readings: Sequence[MirrorStatus]) -> str:
    """What goes wrong though no mirror needs somebody by itself, or ""."""
    unknown, unproven = (
        sum(reading.state is state for reading in readings) for state in (State.UNKNOWN, State.UNPROVEN)
    )
    retrying = sum(reading.state is State.RETRYING for reading in readings)
    outages = dict.fromkeys(outage.brief for reading in readings for outage in reading.outages)
    words = [f"{count(unknown, 'is', 'are')} unknown"] if unknown else []
    words += [f"{count(unproven, 'is', 'are')} not proven"] if unproven else []
    words += [f"{count(retrying, 'is', 'are')} being retried"] if retrying else []
    return "; ".join(filter(None, [", ".join(words), *outages]))


def _named(reading: MirrorStatus, *, first: bool) -> Phrase:
    return say("" if first else ", ", name(reading.mirror.name), f" is {reading.state.word.lower()}")


# --- several at once --------------------------------------------------------------------------------------------------


VERBS: Mapping[str, tuple[str, Callable[..., object]]] = {
    "sync": ("Syncing", services.mirror_sync),
    "pause": ("Queued: paused", partial(settings.mirror_update, changes={"paused": True})),
    "resume": ("Queued: resumed", partial(settings.mirror_update, changes={"paused": False})),
    "validate": ("Queued: all heads are validated again", validation_ask),
}


@require_POST
@may_see
def mirrors_change(request: HttpRequest) -> HttpResponse:
    """Do one thing to each of the chosen mirrors; those that refuse are told one by one, the others go on."""
    message, verb = VERBS.get(request.POST.get("verb", ""), ("", None))
    if verb is None:
        raise Invalid("choose an action", field="verb")
    chosen = Mirror.objects.visible_to(request.user).select_related("source").order_by("name")
    names = filter(NAME.fullmatch, request.POST.getlist("mirror")[:PAGE])
    mirrors = list(chosen.filter(name__in=list(names)))
    refused = {mirror.name: why for mirror in mirrors if (why := _refusal(request, verb, mirror))}
    done = [mirror.name for mirror in mirrors if mirror.name not in refused]
    if done:
        messages.success(request, f"{message}: {', '.join(done)}.")
    for mirror, why in refused.items():
        messages.error(request, f"{mirror}: {why}")
    if not mirrors:
        messages.error(request, "Select at least one mirror first.")
    if request.htmx:
        return render(request, "_notices.html")
    return redirect(f"{reverse('mirrors')}?{request.GET.urlencode()}")


def _refusal(request: HttpRequest, verb: Callable[..., object], mirror: Mirror) -> str:
    """Do it; why not, or ""."""
    try:
        verb(actor=request.user, mirror=mirror)
    except LakeMirrorError as error:
        return str(error)
    return ""
