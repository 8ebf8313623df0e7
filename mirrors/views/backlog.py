"""What a mirror lacks, on its page: grouped, filtered, looked for at once."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.bringing import REPLACEABLE
from core.errors import Invalid, LakeMirrorError
from core.installations.unreplicated_objects import Lacking, Namespaces, say_lacking
from core.text.phrases import count
from db import clock
from mirrors.models import Blocker
from mirrors.preflight.unreplicated import count_unreplicated, route_of_mirror
from mirrors.queries.missing import blockers_of
from mirrors.queries.missing_counts import is_cut_short
from mirrors.services.backlog import Looked, bringing_stop, files_bring, things_retry
from mirrors.status.mirror import mirror_statuses
from mirrors.views.tabs import carry_out, find_visible, may_see, show_tab
from web.pages import page_of_rows, with_query
from web.paging import number_of

FILTERS = ("kind", "reason", "cause", "prefix", "branch", "commit", "address")
GROUPS = 10
MOST_IDS = 1000
BRING, REPLACE, STOP = "bring-", "replace-", "bring-stop"


@never_cache
@require_safe
@may_see
def backlog(request: HttpRequest, name: str) -> HttpResponse:
    """Everything that is missing or wrong at a mirror: by reason, by folder, and one by one."""
    mirror = find_visible(request, name)
    [reading] = mirror_statuses([mirror])
    given = {field: request.GET.get(field, "").strip() for field in FILTERS}
    wrong = ""
    try:
        rows = blockers_of(mirror, **given)
    except LakeMirrorError as error:
        rows, wrong = mirror.blockers.none(), str(error)
    looked = Looked(rows)
    page = page_of_rows(request, rows.exclude(pk__in=looked.repeated), "pk", newest=False)
    context = {
        "page": page,
        "held": looked.commits_held(mirror, page.rows),
        "tally": looked,
        "reasons": looked.by_reason()[:GROUPS],
        "replaceable": any(group.group in REPLACEABLE for group in looked.by_reason()),
        "causes": [group for group in looked.by_cause() if group.group][:GROUPS],
        "folders": looked.by_prefix(given["prefix"])[:GROUPS],
        "filters": given,
        "error": wrong,
        "chips": [(field, value, with_query(request, **{field: None})) for field, value in given.items() if value],
        "kinds": Blocker.Kind.values,
        "csv": reverse("api-blockers", args=[mirror.source.name, mirror.name]) + with_query(request, format="csv"),
        "manifest": reverse("api-unreplicated", args=[mirror.source.name, mirror.name]) + "?format=csv",
        "all_named": not is_cut_short(mirror),
        "now": clock.now(),
    }
    return show_tab(request, reading, "mirror_backlog", context)


@require_POST
@may_see
def blockers_retried(request: HttpRequest, name: str) -> HttpResponse:
    """Look now for one thing, for those selected, for those of a reason, or for all; or have one, those selected or all
    copied by LakeMirror once, or written over if they are wrong; or end that."""
    mirror = find_visible(request, name)
    which = request.POST.get("which", "")
    if which == STOP:
        return carry_out(request, mirror, partial(bringing_stop, actor=request.user, mirror=mirror), _stopped)
    replaces, brings = which.startswith(REPLACE), which.startswith((BRING, REPLACE))
    verb = partial(files_bring if brings else things_retry, actor=request.user, mirror=mirror)
    verb = partial(verb, replace=True) if replaces else verb
    which = which.removeprefix(BRING).removeprefix(REPLACE)
    if which.startswith("one-"):
        verb = partial(verb, ids=_ids([which.removeprefix("one-")]))
    elif which == "selected":
        verb = partial(verb, ids=_ids(request.POST.getlist("thing")))
    elif which == "reason" and not brings:
        verb = partial(verb, reason=_reason(request.POST.get("reason", "")))
    elif which != "all":
        raise Invalid("choose which ones: one, those selected, those with a reason, or all", field="which")
    return carry_out(request, mirror, verb, _replaced if replaces else _brought if brings else _message)


@require_POST
@may_see
def mirror_unreplicated(request: HttpRequest, name: str) -> HttpResponse:
    """Count what lies in the source's namespace and not in the mirror's, by listing both."""
    mirror = find_visible(request, name)
    route = route_of_mirror(actor=request.user, mirror=mirror)
    return carry_out(request, mirror, partial(count_unreplicated, route), partial(_lacking, route.places))


def _lacking(places: Namespaces, found: Lacking) -> str:
    more = " The manifest lists the rest." if not found.whole else ""
    written = " Recent writes may still be on their way." if found.objects else ""
    return f"{say_lacking(places, found)}.{more}{written}"


def _reason(given: str) -> str:
    """One that was chosen: an empty one would mean all."""
    if not given or not given.isprintable():
        raise Invalid("choose a reason", field="reason")
    return given


def _ids(given: list[str]) -> list[int]:
    return [number_of(text, "thing") for text in given[:MOST_IDS]]


def _message(number: int) -> str:
    """What is told of a retry that found so many things to look for."""
    if not number:
        return "Nothing selected can be checked again: it may have arrived already."
    return f"Checking {count(number, 'object')} again now."


def _brought(number: int) -> str:
    """What is told of so many files that LakeMirror is to copy."""
    if not number:
        return "Nothing selected is missing any more, or none of it can be copied."
    return f"Copying {count(number, 'object')} now. Each counts once it is found at the mirror."


def _replaced(number: int) -> str:
    """What is told of so many files that LakeMirror is to write over."""
    if not number:
        return "Nothing selected has other content than it should any more, or none of it can be replaced."
    return f"Replacing {count(number, 'object')} now, where the source has what the commit says."


def _stopped(number: int) -> str:
    """What is told of so many objects that are left to the stores' replication again."""
    left = (
        f"{count(number, 'object is', 'objects are')} left to the stores' replication" if number else "nothing was left"
    )
    return f"Copying is stopped: {left}."
