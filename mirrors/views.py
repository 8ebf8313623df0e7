"""The pages of mirrors. One view for a page; the part that updates itself has the same address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from hashlib import sha256

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.errors import LakeMirrorError
from core.phrases import Phrase, count, name, say, sentence
from core.states import ASIDE, State, Tone
from lakemirror_site.errors import status_of
from mirrors import clock, options, services
from mirrors.forms import DeletionForm, MirrorForm
from mirrors.lag_panel import lag_panel
from mirrors.models import Mirror
from mirrors.page_parts import SECTION, carry_out, find_visible, may_see, show_tab, whole_or_part
from mirrors.readings import (
    BranchCommits,
    BranchReading,
    MirrorReading,
    branch_commits,
    mirror_reading,
    mirror_readings,
)
from mirrors.tag_readings import count_tags, tag_readings

PAGE = 100
OPENED = 10


# --- the list -------------------------------------------------------------------------------------------------------


@never_cache
@require_safe
@may_see
def mirror_list(request: HttpRequest) -> HttpResponse:
    """All mirrors, those that need somebody first."""
    now = clock.now()
    visible = Mirror.objects.visible_to(request.user).select_related("source")
    page = list(visible.filter(name__gt=request.GET.get("after", "")).order_by("name")[: PAGE + 1])
    readings = sorted(mirror_readings(page[:PAGE], now), key=_urgency)
    context = SECTION | {
        "readings": readings,
        "now": now,
        "told": _tell(readings),
        "active": any(reading.active for reading in readings),
        "changes": ", ".join(f"{reading.mirror.name}: {reading.state.word}" for reading in readings),
        "next_after": page[PAGE - 1].name if len(page) > PAGE else "",
        "example_region": _example_region(),
    }
    return render(request, whole_or_part(request, "mirrors/list.html", "mirrors/_list.html"), context)


def _urgency(reading: MirrorReading) -> tuple[int, float, str]:
    return -reading.state.severity, -(reading.lag or 0), reading.mirror.name


def _tell(readings: Sequence[MirrorReading]) -> Phrase:
    """One sentence for all mirrors: who needs somebody, and whether the rest is well."""
    urgent = [reading for reading in readings if reading.state.tone is Tone.BAD]
    well = sum(reading.state is State.UP_TO_DATE for reading in readings)
    if not urgent:
        return sentence(f"{well} of {count(len(readings), 'mirror')} up to date; nothing needs you")
    listed = say(*(_named(reading, first=number == 0) for number, reading in enumerate(urgent[:3])))
    more = f", and {len(urgent) - 3} more" if len(urgent) > 3 else ""
    need = count(len(urgent), "mirror needs", "mirrors need")
    return sentence(f"{need} you: ", listed, more, f". {well} of {len(readings)} are up to date")


def _named(reading: MirrorReading, *, first: bool) -> Phrase:
    return say("" if first else ", ", name(reading.mirror.name), f" is {reading.state.word.lower()}")


def _example_region() -> str:
    form = MirrorForm.fresh()
    return str(form.initial["region"])


# --- one mirror -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A branch on the page; `commits` when it is opened."""

    anchor: str
    branch: BranchReading
    commits: BranchCommits | None


@never_cache
@require_safe
@may_see
def mirror_detail(request: HttpRequest, name: str) -> HttpResponse:
    """A mirror and its branches; those named by `branch` are opened to their commits."""
    mirror = find_visible(request, name)
    now = clock.now()
    reading = mirror_reading(mirror, now)
    opened = request.GET.getlist("branch")[:OPENED]
    find = request.GET.get("find", "").strip()
    page = _page_of_branches(reading, find, request.GET.get("page"))
    context = {
        "page": page,
        "many": len(reading.branches) > PAGE,
        "find": find,
        "rows": _rows(mirror, page, opened, now),
        "opened": opened,
        "tags": tag_readings(mirror, amount=PAGE),
        "tags_number": count_tags(mirror),
        "panel": lag_panel(reading),
    }
    return show_tab(request, reading, "mirror", context)


def _page_of_branches(reading: MirrorReading, find: str, number: str | None) -> Page:
    """Branches whose name holds `find`, those that need somebody first: the asked page, or the nearest one."""
    found = [branch for branch in reading.branches if find.casefold() in branch.name.casefold()]
    return Paginator(sorted(found, key=_rank), PAGE).get_page(number)


def _rows(mirror: Mirror, page: Iterable[BranchReading], opened: Sequence[str], now: datetime) -> list[Row]:
    return [
        Row(
            anchor=anchor(branch.name),
            branch=branch,
            commits=branch_commits(mirror, branch.name, now) if branch.name in opened else None,
        )
        for branch in page
    ]


def _rank(branch: BranchReading) -> tuple[bool, int, bool, str]:
    """Who needs somebody first, who goes last."""
    return branch.state in ASIDE, -branch.state.severity, not branch.default, branch.name


def anchor(branch: str) -> str:
    """A place on the page that stays the same branch's, whatever others come and go."""
    return f"b-{sha256(branch.encode()).hexdigest()[:12]}"


# --- verbs ----------------------------------------------------------------------------------------------------------


@never_cache
@may_see
def mirror_new(request: HttpRequest) -> HttpResponse:
    """The form of a new mirror. What was typed stays there when something is wrong with it."""
    if request.method != "POST":
        return _show_form(request, MirrorForm.fresh())
    form = MirrorForm(request.POST)
    if not form.is_valid():
        return _show_form(request, form, status=400)
    try:
        mirror = services.mirror_create(actor=request.user, request=request, **form.creation)
    except LakeMirrorError as error:
        form.refuse(error)
        return _show_form(request, form, status=_status(error))
    messages.success(request, f"{mirror.name} is being made. Its branches appear as their commits arrive.")
    return redirect("mirror", mirror.name)


def _status(error: LakeMirrorError) -> int:
    return int(status_of(error) or 500)


def _show_form(request: HttpRequest, form: MirrorForm, status: int = 200) -> HttpResponse:
    return render(request, "mirrors/new.html", SECTION | {"form": form}, status=status)


@require_POST
@may_see
def mirror_sync(request: HttpRequest, name: str) -> HttpResponse:
    """Queue a look at source and destination; the page says so at once."""
    mirror = find_visible(request, name)
    told = f"Queued: {mirror.source.name} is looked at now, and all that is missing is looked for again."
    sync = partial(services.mirror_sync, actor=request.user, mirror=mirror, request=request)
    return carry_out(request, mirror, sync, told)


@require_POST
@may_see
def mirror_pause(request: HttpRequest, name: str, paused: bool) -> HttpResponse:
    """Let nothing of a mirror move, or let it move again."""
    mirror = find_visible(request, name)
    told = f"{mirror.name} is paused: no branch is moved; what arrives is copied and checked all the same."
    if not paused:
        told = f"{mirror.name} is resumed: each branch goes to its newest complete commit."
    change = {"paused": paused}
    pause = partial(options.mirror_update, actor=request.user, mirror=mirror, changes=change, request=request)
    return carry_out(request, mirror, pause, told)


@require_POST
@may_see
def branch_reset(request: HttpRequest, name: str) -> HttpResponse:
    """Queue the undoing of what somebody wrote to a branch by force."""
    mirror, branch = find_visible(request, name), request.POST.get("branch", "")
    told = f"Queued: the uncommitted changes of {branch} are undone now."
    reset = partial(services.branch_reset, actor=request.user, mirror=mirror, branch=branch, request=request)
    return carry_out(request, mirror, reset, told)


@never_cache
@may_see
def mirror_delete(request: HttpRequest, name: str) -> HttpResponse:
    """Say what goes and what stays, and ask for the name."""
    mirror = find_visible(request, name)
    form = DeletionForm(request.POST if request.method == "POST" else None, name=mirror.name)
    if not (form.is_bound and form.is_valid()):
        return _show_deletion(request, mirror, form, 400 if form.is_bound else 200)
    try:
        services.mirror_delete(actor=request.user, mirror=mirror, request=request)
    except LakeMirrorError as error:
        form.add_error(None, str(error))
        return _show_deletion(request, mirror, form, _status(error))
    messages.success(request, f"{mirror.name} is being deleted. Its objects stay where they are.")
    return redirect("mirrors")


def _show_deletion(request: HttpRequest, mirror: Mirror, form: DeletionForm, status: int) -> HttpResponse:
    context = SECTION | {
        "mirror": mirror,
        "form": form,
        "branches": mirror.branches.count(),
        "commits": mirror.commits.filter(data="complete").count(),
    }
    return render(request, "mirrors/delete.html", context, status=status)
