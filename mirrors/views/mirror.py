"""The pages of one mirror. One view for a page; the part that updates itself has the same address."""

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
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.errors import LakeMirrorError
from core.mirroring.states import ASIDE
from db import clock
from db.snapshot import one_moment
from mirrors.models import Mirror, MirrorCommit
from mirrors.services import mirrors, settings
from mirrors.services.rights import require_operation, right_to_delete
from mirrors.status.branch_commits import BranchCommits, branch_commits
from mirrors.status.copying import copying_of
from mirrors.status.lag_panel import lag_panel
from mirrors.status.mirror import BranchStatus, MirrorStatus, mirror_status
from mirrors.status.sparks import sparks
from mirrors.status.tags import count_tags, tag_readings
from mirrors.views.forms import CopyLimitsForm, DeletionForm
from mirrors.views.tabs import SECTION, carry_out, find_visible, may_see, show_tab
from rbac import services as rbac
from web.errors import status_of
from web.pauses import stated_by_form

PAGE = 100
OPENED = 10


# --- one mirror -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A branch on the page; `commits` when it is opened."""

    anchor: str
    branch: BranchStatus
    commits: BranchCommits | None


@never_cache
@require_safe
@may_see
def mirror_detail(request: HttpRequest, name: str) -> HttpResponse:
    """A mirror and its branches; those named by `branch` are opened to their commits."""
    mirror = find_visible(request, name)
    now = clock.now()
    with one_moment():
        reading = mirror_status(mirror, now)
        panel = lag_panel(reading)
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
        "panel": panel,
        "sparks": sparks([reading.mirror], reading.as_of),
        "copying": copying_of(mirror, now),
        "default_head": next((branch.mirror_head for branch in reading.branches if branch.default), ""),
    }
    return show_tab(request, reading, "mirror", context)


def _page_of_branches(reading: MirrorStatus, find: str, number: str | None) -> Page:
    """Branches whose name holds `find`, those that need somebody first: the asked page, or the nearest one."""
    matching = [branch for branch in reading.branches if find.casefold() in branch.name.casefold()]
    return Paginator(sorted(matching, key=_rank), PAGE).get_page(number)


def _rows(mirror: Mirror, page: Iterable[BranchStatus], opened: Sequence[str], now: datetime) -> list[Row]:
    return [
        Row(
            anchor=anchor(branch.name),
            branch=branch,
            commits=branch_commits(mirror, branch.name, now) if branch.name in opened else None,
        )
        for branch in page
    ]


def _rank(branch: BranchStatus) -> tuple[bool, int, bool, str]:
    """Who needs somebody first, who goes last."""
    return branch.state in ASIDE, -branch.state.severity, not branch.default, branch.name


def anchor(branch: str) -> str:
    """A place on the page that stays the same branch's, whatever others come and go."""
    return f"b-{sha256(branch.encode()).hexdigest()[:12]}"


# --- verbs ----------------------------------------------------------------------------------------------------------


@require_POST
@may_see
def mirror_sync(request: HttpRequest, name: str) -> HttpResponse:
    """Queue a look at source and destination; the page says so at once."""
    mirror = find_visible(request, name)
    message = f"Syncing {mirror.name}: {mirror.source.name} and everything that is missing are checked now."
    sync = partial(mirrors.mirror_sync, actor=request.user, mirror=mirror)
    return carry_out(request, mirror, sync, message)


@require_POST
@may_see
def mirror_pause(request: HttpRequest, name: str, paused: bool) -> HttpResponse:
    """Let nothing of a mirror move, or let it move again."""
    mirror = find_visible(request, name)
    message = f"{mirror.name} is paused: branches don't move, but commits are still copied and validated."
    if not paused:
        message = f"{mirror.name} is resumed: each branch moves to its newest complete commit."

    def pause() -> None:
        change = {"paused": paused} | (stated_by_form(request.POST) if paused else {})
        settings.mirror_update(actor=request.user, mirror=mirror, changes=change)

    return carry_out(request, mirror, pause, message)


@require_POST
@may_see
def mirror_copying(request: HttpRequest, name: str) -> HttpResponse:
    """Pause, resume or limit the copying of a mirror's objects, by the button that was clicked."""
    mirror, verb = find_visible(request, name), request.POST.get("verb", "")
    require_operation(request.user, mirror)  # before what was typed is judged
    paused = {"pause": True, "resume": False}
    message = {
        "pause": f"Copying for {mirror.name} is paused: what is in flight is copied to its end.",
        "resume": f"Copying for {mirror.name} is resumed.",
    }.get(verb, f"The limits of {mirror.name} are changed: they hold within 10 seconds.")

    def change() -> None:
        changes = {"copying_paused": paused[verb]} if verb in paused else CopyLimitsForm(request.POST).limits()
        settings.copying_update(actor=request.user, mirror=mirror, changes=changes)

    return carry_out(request, mirror, change, message)


@require_POST
@may_see
def branch_reset(request: HttpRequest, name: str) -> HttpResponse:
    """Queue the undoing of what somebody wrote to a branch by force."""
    mirror, branch = find_visible(request, name), request.POST.get("branch", "")
    message = f"Queued: the uncommitted changes of {branch} are being undone."
    reset = partial(mirrors.branch_reset, actor=request.user, mirror=mirror, branch=branch)
    return carry_out(request, mirror, reset, message)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@may_see
def mirror_delete(request: HttpRequest, name: str) -> HttpResponse:
    """Say what goes and what stays, and ask for the name. Raises Denied for who may not delete it."""
    mirror = find_visible(request, name)
    rbac.require(request.user, right_to_delete(mirror))
    form = DeletionForm(request.POST if request.method == "POST" else None, name=mirror.name)
    if not (form.is_bound and form.is_valid()):
        return _show_deletion(request, mirror, form, 400 if form.is_bound else 200)
    try:
        mirrors.mirror_delete(actor=request.user, mirror=mirror)
    except LakeMirrorError as error:
        form.add_error(None, str(error))
        return _show_deletion(request, mirror, form, int(status_of(error) or 500))
    messages.success(request, f"{mirror.name} is being deleted. Its objects stay where they are.")
    return redirect("mirrors")


def _show_deletion(request: HttpRequest, mirror: Mirror, form: DeletionForm, status: int) -> HttpResponse:
    context = SECTION | {
        "mirror": mirror,
        "form": form,
        "branches": mirror.branches.count(),
        "commits": mirror.commits.filter(data=MirrorCommit.Data.COMPLETE).count(),
    }
    return render(request, "mirrors/delete.html", context, status=status)
