"""The page of jobs: who is at work on what, what waits, what fails."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from core.errors import LakeMirrorError
from mirrors import clock
from mirrors.jobs import STATES, duties_of, in_state, jobs_of, progress_of
from mirrors.jobs import duty_retry as retry
from mirrors.models import Duty, Mirror
from mirrors.page_parts import may_see
from mirrors.queue_readings import queue_readings, troubles

PAGE = 50


@never_cache
@require_safe
@may_see
def jobs(request: HttpRequest) -> HttpResponse:
    """Workers, checks going on, and duties, those that fail first."""
    now = clock.now()
    visible = Mirror.objects.visible_to(request.user)
    kind, state, find = (request.GET.get(key, "").strip() for key in ("kind", "state", "find"))
    named = visible.filter(name__icontains=find) if find else visible
    rows = in_state(duties_of(named), state, now)
    rows = rows.filter(kind=kind) if kind in Duty.Kind.values else rows
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    queues = queue_readings(now)
    running = progress_of(visible, now)
    context = {
        "section": "jobs",
        "jobs": jobs_of(list(page), now),
        "page": page,
        "queues": queues,
        "troubles": troubles(queues),
        "running": running,
        "kinds": Duty.Kind.values,
        "states": STATES,
        "kind": kind,
        "state": state,
        "find": find,
        "now": now,
        "active": bool(running) or any(queue.holders or queue.due for queue in queues),
    }
    return render(request, "jobs/_jobs.html" if request.htmx.target == "live" else "jobs/jobs.html", context)


@require_POST
@may_see
def duty_retry(request: HttpRequest, duty: int) -> HttpResponse:
    """Make a duty due now; the page says so at once."""
    found = duties_of(Mirror.objects.visible_to(request.user)).filter(pk=duty).first()
    if found is None:
        raise Http404(f"no duty {duty}")
    try:
        retry(actor=request.user, duty=found, request=request)
        messages.success(request, f"Queued: {found.kind} is due now.")
    except LakeMirrorError as error:
        if not request.htmx:
            raise
        messages.error(request, str(error))
    if request.htmx:
        return render(request, "_notices.html")
    return redirect(f"{reverse('jobs')}?{request.GET.urlencode()}")
